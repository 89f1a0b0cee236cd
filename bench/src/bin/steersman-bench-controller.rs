//! One controller of the benchmark `controller`, in a program of the usual size.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman_bench::run_controller()
}
