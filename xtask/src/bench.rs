//! `cargo xtask bench`: builds and runs the benchmarks, optimised.

use crate::containerd;
use crate::etcd;
use crate::process::{self, Outcome};

/// The benchmarks that do without the program `steersman`.
const WITHOUT_PROGRAM: [&str; 2] = ["informer", "controller"];

/// Runs the benchmark that is named, or all; every argument goes to the benchmarks.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    match arguments.split_first() {
        Some((name, rest)) if name == "store" => return store(rest),
        Some((name, rest)) if name == "cel" => return expressions(rest),
        Some((name, _)) if !name.starts_with('-') => {}
        _ => {
            store(&of_all(arguments))?;
            expressions(&of_all(arguments))?;
        }
    }
    if !arguments.iter().any(|argument| WITHOUT_PROGRAM.contains(&argument.as_str())) {
        // The others start the program that stands beside them.
        let program = ["build", "--release", "--locked", "--package", "steersman-cli"];
        process::run(process::cargo().args(program).args(["--bin", "steersman"]))?;
    }
    let named = arguments.first().filter(|name| !name.starts_with('-'));
    if named.is_none_or(|name| name == "node") {
        containerd::need()?;
        let agent = ["build", "--profile", "small", "--locked", "--package", "steersman-cli"];
        process::run(process::cargo().args(agent).args(["--bin", "steersman-node"]))?;
    }
    if arguments.iter().any(|argument| argument == "--upstream") {
        etcd::need()?; // Kubernetes' own programs keep their objects there
    }
    // Rivals are compiled here as well; both get what the compiler can do.
    let bench = ["--profile", "bench", "--locked", "--package", "steersman-bench"];
    process::run(process::cargo().arg("build").args(bench).arg("--bins"))?;
    process::run(process::cargo().arg("run").args(bench).arg("--").args(arguments))
}

/// Runs the benchmark of stores, which is a program of its own.
fn store(arguments: &[String]) -> Outcome {
    etcd::need()?;
    let bench = ["run", "--release", "--locked", "--package", "steersman-bench-store", "--"];
    // As `steersman` sets it for itself.
    let allocator = ("MIMALLOC_PURGE_DELAY", "0");
    process::run(process::cargo().env(allocator.0, allocator.1).args(bench).args(arguments))
}

/// Runs the benchmark of expressions: with its rivals it is a workspace of its own.
fn expressions(arguments: &[String]) -> Outcome {
    let bench = ["run", "--release", "--locked", "--manifest-path", "bench/cel/Cargo.toml"];
    let mut cargo = process::cargo();
    cargo.args(bench).args(["--target-dir", "target/bench-cel", "--"]);
    process::run(cargo.args(arguments))
}

/// The arguments that every benchmark knows.
fn of_all(arguments: &[String]) -> Vec<String> {
    arguments.iter().filter(|argument| *argument == "--json").cloned().collect()
}
