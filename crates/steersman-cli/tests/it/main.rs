//! The program as its users meet it: its output, its exit codes, and kubectl against it.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

#[allow(dead_code, unreachable_pub, reason = "it is shared with other crates' tests")]
#[path = "../../../steersman-cluster/tests/real_node/containerd/mod.rs"]
mod containerd;
mod demo;
mod etcd_access;
mod etcd_faults;
#[allow(unreachable_pub, reason = "it is shared with other crates' tests")]
#[path = "../../../steersman-store/tests/it/etcd_process/mod.rs"]
mod etcd_process;
mod flags;
mod helm;
mod kubectl;
mod load;
mod load_command;
mod openapi;
mod operator;
mod permissions;
mod program;
mod real_node;
mod restart;
mod scheduler;
mod servers;
mod snapshot;
mod workload;
