//! The built-in controllers of a Kubernetes cluster.
//!
//! Each folder is one controller: `mod.rs` wires it, `plan.rs` decides (pure, the clock an
//! argument), `reconcile.rs` reads and writes. They use the public API of [`steersman`] and see
//! a cluster only through its client; they know nothing of API servers, stores or nodes, and
//! run against any Kubernetes cluster. Start with [`install`].

mod discovery;
mod ownership;
mod pod;
mod selectors;

mod deployment;
mod garbage_collector;
mod namespace;
mod replicaset;
mod serviceaccount;

use steersman::manager::Group;
use steersman::{Controller, Manager};

/// Every built-in controller that reconciles one kind.
pub fn all() -> Vec<Controller> {
    vec![
        deployment::controller(),
        replicaset::controller(),
        namespace::controller(),
        serviceaccount::controller(),
    ]
}

/// Adds every built-in controller to a manager, including the garbage collector, which
/// follows all kinds at once and is therefore no [`Controller`].
#[must_use]
pub fn install(manager: Manager) -> Manager {
    let manager = all().into_iter().fold(manager, Manager::with);
    let group = Group::LeaderElected;
    manager.with_runnable_in(group, "garbage-collector", garbage_collector::run)
}
