//! The mixed soak of `cargo xtask soak`.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman_attack::soak()
}
