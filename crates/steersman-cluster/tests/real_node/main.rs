//! Pods in real containers.
//!
//! Needs root and Debian's packages containerd, runc, containernetworking-plugins and busybox-static;
//! `cargo xtask test` installs them.

mod containerd;
mod eviction;
mod garbage;
mod inside;
mod lifecycle;
mod machine;
mod restarts;
mod workloads;
