//! `cargo xtask tidy`: only the checks of the repository's own rules, in `tests/tidy`.

use crate::process::{self, Outcome};

/// Runs the tidy test; further arguments go to it.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let tidy = ["test", "--quiet", "--locked", "--package", "xtask", "--test", "tidy", "--"];
    process::run(process::cargo().args(tidy).args(arguments))
}
