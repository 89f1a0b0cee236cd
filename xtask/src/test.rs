//! `cargo xtask test`: installs what the tests need, then runs all of them.

use crate::attack;
use crate::clients;
use crate::conformance;
use crate::containerd;
use crate::etcd;
use crate::process::{self, Outcome};

/// Runs every test of the workspace, the clients of other languages, and the attacks in short.
/// Further arguments go to `cargo test`, which is then all that runs.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    clients::kubectl_and_helm()?;
    etcd::need()?;
    containerd::need()?;
    process::run(process::cargo().args(["test", "--workspace", "--locked"]).args(arguments))?;
    if arguments.is_empty() {
        conformance::run_built(&[])?;
        attack::run_short()?;
    }
    process::announce("every test passed");
    Ok(())
}
