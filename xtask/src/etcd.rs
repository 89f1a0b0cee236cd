//! The real etcd that stores are tested on and measured against.

use std::process::{Command, Stdio};

use crate::debian::{self, Tool};
use crate::process::Outcome;

const ETCD: Tool = Tool {
    probe: &["sh", "-c", "etcd --version && etcdctl version"],
    packages: &["etcd-server", "etcd-client"],
    purpose: "the store on etcd",
};

/// Brings `etcd` and `etcdctl` unless they are there.
pub(crate) fn need() -> Outcome {
    if debian::need(&ETCD)? {
        stop_service();
    }
    Ok(())
}

/// Debian's package starts a server of its own, which nobody here asks. Where services do not
/// start by themselves, as in a container, there is nothing to stop.
fn stop_service() {
    let mut stop = Command::new("service");
    stop.args(["etcd", "stop"]).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = stop.status();
}
