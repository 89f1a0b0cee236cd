//! `cargo xtask compare-scheduler`: where our scheduler decides otherwise than kube-scheduler.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman_compare::scheduling::main()
}
