//! The framework on a cluster inside the test.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

mod defects;
mod dynamic;
mod events;
mod election;
mod faults;
mod gaps;
mod informers;
mod manager;
mod reconcile;
mod sources;
mod status;
mod triggers;
