//! Assigns Pods to Nodes.
//!
//! A Pod without a node passes through the `snapshot` (what each node has and what is already
//! taken of it), the filters among the `plugins` (which nodes could run it), the scores
//! (which of them should), and is bound. What fits nowhere is told so in its status, and is
//! tried again when a node or a Pod changes, or after a while. The scheduler sees a cluster only
//! through its client; it knows nothing of API servers, stores or node agents.

mod host_ports;
mod requests;

mod snapshot;

mod plugins;

mod backlog;
mod decision;
mod scheduler;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::Controller;

pub use host_ports::HostPort;
pub use scheduler::{SCHEDULER_NAME, Scheduler};

/// How many Pods are bound at the same time. Decisions are taken one after another.
const CONCURRENCY: usize = 8;

/// The scheduler, ready for a manager.
pub fn controller() -> Controller {
    let scheduler = Scheduler::default();
    let state = Arc::clone(scheduler.state());
    let on_nodes = Arc::clone(&state);
    let on_pods = Arc::clone(&state);
    Controller::of::<Pod>()
        .named(SCHEDULER_NAME)
        .only(scheduler::wants_a_node)
        .observes(move |event| state.lock().observe(event))
        .watches(move |_: &Node| on_nodes.lock().waiting())
        .watches(move |pod: &Pod| on_pods.lock().waiting_for(pod))
        .concurrency(CONCURRENCY)
        .reconcile(scheduler)
}
