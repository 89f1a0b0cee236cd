//! The real container runtime that the node agent is tested on.

use crate::debian::{self, Tool};
use crate::process::Outcome;

const CONTAINERD: Tool = Tool {
    probe: &[
        "sh",
        "-c",
        "containerd --version && runc --version && test -x /usr/lib/cni/bridge && busybox true && \
         ip -V && iptables --version",
    ],
    packages: &[
        "containerd",
        "runc",
        "busybox-static",
        "containernetworking-plugins",
        "iptables",
        "iproute2",
    ],
    purpose: "the node agent's real containers",
};

/// Brings containerd, runc, plug-ins of networks and busybox unless they are there. Tests start a
/// containerd of their own.
pub(crate) fn need() -> Outcome {
    debian::need(&CONTAINERD).map(drop)
}
