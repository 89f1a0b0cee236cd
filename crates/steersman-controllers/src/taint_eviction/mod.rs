//! The taint eviction controller: deletes Pods from nodes with a `NoExecute` taint that they do not
//! tolerate, or tolerate only for a time.
//!
//! [`plan`] says which and when, [`evictions`] what was decided before: the time of a Pod runs from
//! when its node was tainted, as long as it is.

mod events;
mod evictions;
mod metrics;
mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::handler::Requests;
use steersman::informer::Event;
use steersman::source::Watch;
use steersman::{Controller, Metrics, predicate};

use crate::node::no_execute_taints;
use crate::pod::node_name;
use evictions::Evictions;
use reconcile::Evictor;

/// The taint eviction controller.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let evictions = Evictions::default();
    let (observed, known, tainted) = (evictions.clone(), evictions.clone(), evictions.clone());
    let differ = |old: &Node, new: &Node| no_execute_taints(old) != no_execute_taints(new);
    let nodes = Watch::<Node>::of().when(predicate::funcs().on_update(differ));
    let moved =
        |old: &Pod, new: &Pod| node_name(old) != node_name(new) || !tolerates_alike(old, new);
    Controller::of::<Pod>()
        .named("taint-eviction-controller")
        .observes(move |event| observed.observe(event))
        .when(predicate::funcs().on_update(moved))
        .only(move |pod| known.concerns(pod))
        .watches_with(nodes, move |event: &Event<Node>, requests: &mut Requests| {
            tainted.observe_node(event).into_iter().for_each(|pod| requests.add(pod));
        })
        .concurrency(8)
        .reconcile(Evictor { evictions, metrics: metrics.families() })
}

fn tolerates_alike(one: &Pod, other: &Pod) -> bool {
    let tolerations = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.tolerations.clone());
    tolerations(one) == tolerations(other)
}
