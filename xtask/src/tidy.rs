//! `cargo xtask tidy`: only the checks of the repository's own rules, in `tests/tidy`.

use crate::process::{self, Outcome};

const TIDY: [&str; 8] =
    ["test", "--quiet", "--locked", "--package", "xtask", "--test", "tidy", "--"];

/// Runs the tidy test; further arguments go to it.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    process::run(process::cargo().args(TIDY).args(arguments))
}

/// `cargo xtask circles`: prints how many circles each crate has, and how large they are.
pub(crate) fn circles() -> Outcome {
    let table = ["circles::table", "--ignored", "--nocapture"];
    process::run(process::cargo().args(TIDY).args(table))
}
