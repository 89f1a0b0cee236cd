//! Measures Steersman.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman_bench::run()
}
