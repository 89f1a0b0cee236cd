//! `cargo xtask bench`: builds and runs the benchmarks, optimised.

use crate::process::{self, Outcome};

/// The benchmarks that do without the program `steersman`.
const WITHOUT_PROGRAM: [&str; 2] = ["informer", "controller"];

/// Runs the benchmark that is named, or all; every argument goes to the benchmarks.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    if !arguments.iter().any(|argument| WITHOUT_PROGRAM.contains(&argument.as_str())) {
        // The others start the program that stands beside them.
        let program = ["build", "--release", "--locked", "--package", "steersman-cli"];
        process::run(process::cargo().args(program))?;
    }
    let bench = ["build", "--release", "--locked", "--package", "steersman-bench", "--bins"];
    process::run(process::cargo().args(bench))?;
    let bench = ["run", "--release", "--locked", "--package", "steersman-bench", "--"];
    process::run(process::cargo().args(bench).args(arguments))
}
