//! The program `steersman`.
#![expect(clippy::print_stderr, reason = "a program talks to its user")]

/// Prints a line. Somebody who has stopped reading, as `head` does, is no reason to stop.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod allocator;
mod arguments;
mod demo;
mod kubeconfig;
mod up;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::give_memory_back_at_once();
    match arguments::parse().and_then(up::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
