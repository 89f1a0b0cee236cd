//! `cargo xtask compare` and `compare-scheduler`: build and run the comparisons with Kubernetes' own
//! programs.

use crate::process::{self, Outcome};

/// Every argument goes to the comparison.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let compare = ["run", "--locked", "--package", "steersman-compare", "--"];
    process::run(process::cargo().args(compare).args(arguments))
}

/// The same for the comparison of our scheduler with kube-scheduler.
pub(crate) fn scheduler(arguments: &[String]) -> Outcome {
    let package = ["run", "--locked", "--package", "steersman-compare"];
    let program = ["--bin", "steersman-compare-scheduler", "--"];
    process::run(process::cargo().args(package).args(program).args(arguments))
}
