//! `cargo xtask compare`, `compare-scheduler` and `compare-controllers`: build and run the comparisons
//! with Kubernetes' own programs.

use crate::process::{self, Outcome};

/// Every argument goes to the comparison.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let compare = ["run", "--locked", "--package", "steersman-compare", "--"];
    process::run(process::cargo().args(compare).args(arguments))
}

/// The same for the comparison of our scheduler with kube-scheduler.
pub(crate) fn scheduler(arguments: &[String]) -> Outcome {
    part("steersman-compare-scheduler", arguments)
}

/// The same for the comparison of our controllers with kube-controller-manager.
pub(crate) fn controllers(arguments: &[String]) -> Outcome {
    part("steersman-compare-controllers", arguments)
}

fn part(program: &str, arguments: &[String]) -> Outcome {
    let package = ["run", "--locked", "--package", "steersman-compare", "--bin", program, "--"];
    process::run(process::cargo().args(package).args(arguments))
}
