//! The framework on a cluster inside the test.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

mod anywhere;
mod causes;
mod client;
mod clusters;
mod conditions;
mod defects;
mod dynamic;
mod election;
mod events;
mod faults;
mod finalizers;
mod gaps;
mod health;
mod hot_loop;
mod informers;
mod leadership;
mod logged;
mod manager;
mod mapping;
mod own_writes;
mod permissions;
mod reconcile;
mod replicas;
mod restricted;
mod rules;
#[cfg(unix)]
mod signals;
mod sources;
mod status;
mod triggers;
mod webhooks;
mod world;
