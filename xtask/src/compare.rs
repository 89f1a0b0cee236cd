//! `cargo xtask compare`: builds and runs the comparison with a real kube-apiserver.

use crate::process::{self, Outcome};

/// Every argument goes to the comparison.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let compare = ["run", "--locked", "--package", "steersman-compare", "--"];
    process::run(process::cargo().args(compare).args(arguments))
}
