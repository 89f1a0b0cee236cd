//! The operator on a cluster inside the test, on virtual time.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

mod admission;
mod cleanup;
mod deployed;
mod faults;
mod fixture;
mod guide;
mod replicas;
mod runs;
mod secret;
