//! `cargo xtask test`: installs what the tests need, then runs all of them.

use crate::attack;
use crate::clients;
use crate::conformance;
use crate::containerd;
use crate::etcd;
use crate::process::{self, OPTIMISED, Outcome};

/// Runs every test of the workspace, the clients of other languages, and the attacks in short.
/// Further arguments go to `cargo test`, which is then all that runs.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    clients::kubectl_and_helm()?;
    etcd::need()?;
    containerd::need()?;
    if !arguments.is_empty() {
        return cargo_test(&["--workspace"], arguments);
    }
    let others = OPTIMISED.iter().flat_map(|package| ["--exclude", package]);
    cargo_test(&["--workspace"], others)?;
    for package in OPTIMISED {
        let plain = format!("profile.dev.package.{package}.opt-level=0");
        cargo_test(&["--lib", "--config", &plain, "--package"], [package])?;
    }
    let theirs = OPTIMISED.iter().flat_map(|package| ["--package", package]);
    cargo_test(&["--doc"], theirs)?;
    conformance::run_built(&[])?;
    attack::run_short()?;
    process::announce("every test passed");
    Ok(())
}

fn cargo_test(first: &[&str], further: impl IntoIterator<Item: AsRef<std::ffi::OsStr>>) -> Outcome {
    process::run(process::cargo().args(["test", "--locked"]).args(first).args(further))
}
