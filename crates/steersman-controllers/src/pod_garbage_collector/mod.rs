//! The Pod garbage collector: removes Pods that nobody else will.
//!
//! These are Pods whose node is gone for good, Pods that end on a node that is out of service, Pods
//! that are deleted before they have a node, and of those that have ended the oldest when there are
//! too many ([`plan`]). They are removed by force, since no kubelet would answer.
//!
//! Kubernetes looks for them every twenty seconds. This one only at such moments at which there is
//! one to remove.

mod garbage;
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

use garbage::Garbage;
use reconcile::Collector;

/// How many Pods that have ended may stay.
pub(crate) const TERMINATED_POD_THRESHOLD: usize = 12_500;

/// The Pod garbage collector, which lets so many Pods stay that have ended.
pub(crate) fn controller(metrics: &Metrics, terminated_max: usize) -> Controller {
    let garbage = Garbage::new(terminated_max);
    let (observed, known, noted) = (garbage.clone(), garbage.clone(), garbage.clone());
    let differ = |old: &Node, new: &Node| plan::out_of_service(old) != plan::out_of_service(new);
    let nodes = Watch::<Node>::of().when(predicate::funcs().on_update(differ));
    Controller::of::<Pod>()
        .named("pod-garbage-collector-controller")
        .observes(move |event| observed.observe(event))
        .only(move |pod| known.concerns(pod))
        .watches_with(nodes, move |event: &Event<Node>, requests: &mut Requests| {
            noted.observe_node(event).into_iter().for_each(|pod| requests.add(pod));
        })
        .source(garbage.wakes().source("too many"))
        .reconcile(Collector { garbage, metrics: metrics.families() })
}
