//! `cargo xtask attack`.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman_attack::attack()
}
