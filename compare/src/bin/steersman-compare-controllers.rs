//! `cargo xtask compare-controllers`: what our controllers make of workloads otherwise than
//! kube-controller-manager.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman_compare::controlling::main()
}
