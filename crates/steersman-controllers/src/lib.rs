//! The built-in controllers of a Kubernetes cluster.
//!
//! Each folder is one controller: `mod.rs` wires it, `plan.rs` decides (pure, the clock an
//! argument), `reconcile.rs` reads and writes. They use the public API of [`steersman`] and see
//! a cluster only through its client; they know nothing of API servers, stores or nodes, and
//! run against any Kubernetes cluster. Start with [`install`].

mod discovery;
mod pod;

mod clusterrole_aggregation;
mod deployment;
mod garbage_collector;
mod namespace;
mod replicaset;
mod resourcequota;
mod root_ca;
mod serviceaccount;

use steersman::manager::Group;
use steersman::{Controller, Manager};

/// Every built-in controller: its name and the short name it had before, both as
/// kube-controller-manager has them.
pub const NAMES: [(&str, &str); 8] = [
    ("deployment-controller", "deployment"),
    ("replicaset-controller", "replicaset"),
    ("namespace-controller", "namespace"),
    ("serviceaccount-controller", "serviceaccount"),
    ("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    ("resourcequota-controller", "resourcequota"),
    ("garbage-collector-controller", "garbagecollector"),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
];

/// What controllers have to be told because no client shows it, and which of them run.
pub struct Installation<'a> {
    /// The certificates by which Pods know the API server, in PEM; without them, nobody publishes
    /// any.
    pub root_ca: Option<&'a str>,
    /// Whether the controller of this name, one of [`NAMES`], runs.
    pub runs: &'a dyn Fn(&str) -> bool,
}

/// Keeps out of a manager's caches what no built-in controller reads: for a manager that runs
/// nothing else.
#[must_use]
pub fn restrict_caches(manager: Manager) -> Manager {
    root_ca::restrict_cache(manager)
}

/// Every built-in controller that reconciles one kind and needs to be told nothing.
pub fn all() -> Vec<Controller> {
    vec![
        deployment::controller(),
        replicaset::controller(),
        namespace::controller(),
        serviceaccount::controller(),
        clusterrole_aggregation::controller(),
        resourcequota::controller(),
    ]
}

/// Adds every built-in controller that needs to be told nothing to a manager.
#[must_use]
pub fn install(manager: Manager) -> Manager {
    install_with(manager, &Installation { root_ca: None, runs: &|_| true })
}

/// Adds built-in controllers to a manager, including the garbage collector, which follows all
/// kinds at once and is therefore no [`Controller`].
#[must_use]
pub fn install_with(
    manager: Manager,
    Installation { root_ca, runs }: &Installation<'_>,
) -> Manager {
    let publisher = root_ca.map(root_ca::controller);
    let chosen = all().into_iter().chain(publisher).filter(|controller| runs(controller.name()));
    let manager = chosen.fold(manager, Manager::with);
    if !runs("garbage-collector-controller") {
        return manager;
    }
    let group = Group::LeaderElected;
    manager.with_runnable_in(group, "garbage-collector", garbage_collector::run)
}
