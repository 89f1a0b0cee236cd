//! Pods in real containers.
//!
//! Needs root and Debian's packages containerd, runc, containernetworking-plugins and busybox-static;
//! `cargo xtask test` installs them.

#[allow(dead_code, reason = "the tests of the program use more of it")]
mod containerd;
mod eviction;
mod garbage;
mod inside;
mod lifecycle;
mod lying;
mod machine;
mod resizing;
mod restarts;
mod static_pods;
mod workloads;
