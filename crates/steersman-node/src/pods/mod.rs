//! Pod workers: make each Pod that is bound to one of our nodes run, report it, and end it.
//!
//! [`status`] says what a running Pod's status is and [`ended`] that of one that has ended (both
//! pure); [`reconcile`] starts and stops containers through the runtime and writes, and
//! [`events`] tells people of it.

mod ended;
mod events;
mod reconcile;
mod status;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use steersman::Controller;
use steersman::informer::Event;

use crate::addresses::Addresses;
use crate::registration::Machine;
use crate::runtime::ContainerRuntime;
use reconcile::PodWorker;

/// How many Pods are worked on at the same time.
const CONCURRENCY: usize = 16;

/// The machines of this agent, by the name of their Node.
pub(crate) type Machines = Arc<HashMap<String, Machine>>;

/// The pod workers of these machines.
pub(crate) fn controller(machines: Machines, runtime: impl ContainerRuntime) -> Controller {
    let ours = Arc::clone(&machines);
    let addresses = Arc::new(Addresses::default());
    let runtime = Arc::new(runtime);
    let released = Arc::clone(&addresses);
    let forgetting = Arc::clone(&runtime);
    Controller::of::<Pod>()
        .named("kubelet")
        .only(move |pod| bound_to(pod).is_some_and(|node| ours.contains_key(node)))
        .observes(move |event| {
            // A Pod removed by force is never reconciled again.
            if let Event::Deleted { object, .. } = event {
                let uid = object.uid().unwrap_or_default();
                released.settle(uid);
                forgetting.forget(uid);
            }
        })
        .concurrency(CONCURRENCY)
        .reconcile(PodWorker::new(machines, addresses, runtime))
}

/// The node that a Pod is bound to.
fn bound_to(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}
