//! The node lifecycle controller: finds out which nodes are gone, says so, and keeps Pods off them.
//!
//! A node gives signs of life by its Lease and its status. When there were none for a while
//! ([`health`]), its conditions become `Unknown`, and if it was ready, its Pods are so no longer: a
//! node that said itself that it is not ready has told of its Pods too. What its conditions say
//! becomes taints ([`plan`]): those that keep new Pods away at once; those that send Pods away at a
//! rate that depends on how many nodes of its zone are lost ([`zones`]), and not at all when every
//! zone is, since then rather the network of this controller is.
//!
//! Kubernetes looks at all nodes every five seconds. This one looks when such a moment comes at which
//! there is something to see, so that nothing is done while all nodes are well.

mod health;
mod metrics;
mod monitor;
mod plan;
mod reconcile;
mod settings;
#[cfg(test)]
mod tests;
mod zones;

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::handler::Requests;
use steersman::informer::Event;
use steersman::source::{Source, Watch};
use steersman::{Controller, Manager, Metrics, ObjectKey};

use crate::pulse::Pulse;
use monitor::Monitor;
use reconcile::NodeKeeper;
pub use settings::NodeLifecycleSettings;

/// Where the Leases of nodes are.
const LEASES: &str = "kube-node-lease";
/// Who tells of nodes.
const COMPONENT: &str = "node-controller";

/// The node lifecycle controller. Whoever has a pulse is alive.
pub(crate) fn controller(
    metrics: &Metrics,
    pulse: Option<Arc<dyn Pulse>>,
    settings: NodeLifecycleSettings,
) -> Controller {
    let monitor = Arc::new(Monitor::new(metrics, pulse.clone(), settings));
    let observed = Arc::clone(&monitor);
    let renewed = Arc::clone(&monitor);
    let leases = move |event: &Event<Lease>, _: &mut Requests| renewed.renewed(event);
    let mut controller = Controller::of::<Node>()
        .named("node-lifecycle-controller")
        .observes(move |event| observed.observe(event))
        .watches_with(Watch::<Lease>::of(), leases)
        .reads::<Pod>()
        .source(monitor.wakes().source("zones"))
        .concurrency(8);
    if let Some(pulse) = pulse {
        let noted = Arc::clone(&monitor);
        let changes = pulse.changes().map(move |node| {
            noted.noted(&node);
            ObjectKey::named(node)
        });
        controller = controller.source(Source::stream(changes).named("pulse"));
    }
    controller.reconcile(NodeKeeper { monitor })
}

/// Keeps all Leases but those of nodes out of the cache.
pub(crate) fn restrict_cache(manager: Manager) -> Manager {
    manager.cache::<Lease>(|cache| cache.namespaces([LEASES]))
}
