//! The program `steersman`.
#![expect(clippy::print_stderr, reason = "a program talks to its user")]

/// Prints a line. Somebody who has stopped reading, as `head` does, is no reason to stop.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod arguments;
mod demo;
mod kubeconfig;
mod up;

use std::process::ExitCode;

/// Writes are a third faster with it, and memory goes back to the system after a burst.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match arguments::parse().and_then(up::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
