//! Pods in real containers.
//!
//! Needs root and Debian's packages containerd, runc, containernetworking-plugins, busybox-static and
//! iptables;
//! `cargo xtask test` installs them.

#[allow(dead_code, reason = "the tests of the program use more of it")]
mod containerd;
mod eviction;
mod garbage;
mod host_ports;
mod inside;
mod lifecycle;
mod lying;
mod machine;
mod resizing;
mod restarts;
mod starts;
mod static_pods;
mod workloads;
