//! Assigns Pods to Nodes.
//!
//! A Pod without a node passes through the `snapshot` (what each node has and what is already
//! taken of it), the filters among the `plugins` (which nodes could run it), the scores
//! (which of them should), and is bound. What fits nowhere is told so in its status, and is
//! tried again when a node, a Pod or a volume that it waits for changes, or after a while. Before a Pod
//! is bound whose claims wait for it, their volumes are. The scheduler sees a cluster only
//! through its client; it knows nothing of API servers, stores or node agents.

mod host_ports;
mod requests;

mod pod_volumes;
mod volume_waits;

mod snapshot;

mod plugins;

mod backlog;
mod bind_volumes;
mod decision;
mod scheduler;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use steersman::{Controller, ObjectKey};

pub use host_ports::HostPort;
pub use scheduler::{SCHEDULER_NAME, Scheduler};

/// How many Pods are bound at the same time: while one waits for the disk, others are on their way.
/// Decisions are taken one after another.
const CONCURRENCY: usize = 32;

/// The scheduler, ready for a manager.
pub fn controller() -> Controller {
    let scheduler = Scheduler::default();
    let state = Arc::clone(scheduler.state());
    let on_nodes = Arc::clone(&state);
    let on_pods = Arc::clone(&state);
    let [on_claims, on_volumes, on_classes] = std::array::from_fn(|_| Arc::clone(&state));
    Controller::of::<Pod>()
        .named(SCHEDULER_NAME)
        .only(scheduler::wants_a_node)
        .observes(move |event| state.lock().observe(event))
        .watches(move |_: &Node| on_nodes.lock().waiting())
        .watches(move |pod: &Pod| on_pods.lock().waiting_for(pod))
        .watches(move |claim: &PersistentVolumeClaim| {
            on_claims.lock().volumes.of_claim(&ObjectKey::of(claim))
        })
        .watches(move |_: &PersistentVolume| on_volumes.lock().volumes.all())
        .watches(move |_: &StorageClass| on_classes.lock().volumes.all())
        .concurrency(CONCURRENCY)
        .reconcile(scheduler)
}
