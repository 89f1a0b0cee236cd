//! The DaemonSet controller: one Pod on every node that should have one.
//!
//! [`nodes`] says which nodes those are, [`template`] what their Pods look like (the scheduler places
//! them, by an affinity to one name), [`plan`] which come and go, [`rolling`] how they are replaced
//! when the template changes, and [`backoff`] how fast failed ones are; templates are kept as
//! revisions by [`history`](crate::history).

mod backoff;
mod known;
mod nodes;
mod plan;
mod reconcile;
mod rolling;
mod status;
mod template;
#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use steersman::handler::EnqueueRequestsFromMapFunc;
use steersman::ownership::Selectors;
use steersman::source::Watch;
use steersman::{Controller, predicate};

use known::Known;
use reconcile::Daemons;

/// The DaemonSet controller.
pub(crate) fn controller() -> Controller {
    let selectors = Selectors::new(selector);
    let orphans = selectors.clone();
    let known = Known::default();
    let concerned = known.clone();
    let nodes = Watch::<Node>::of().when(predicate::funcs().on_update(nodes::differ));
    Controller::of::<DaemonSet>()
        .named("daemonset-controller")
        .observes(move |event| {
            selectors.observe(event);
            known.observe(event);
        })
        .owns::<Pod>()
        .watches(move |pod: &Pod| orphans.of_orphan(&pod.metadata))
        .watches_with(nodes, EnqueueRequestsFromMapFunc::new(move |_: &Node| concerned.all()))
        .reads::<ControllerRevision>()
        .concurrency(2)
        .updates_status()
        .reconcile(Daemons::default())
}

/// The labels by which it claims what it controls.
fn selector(set: &DaemonSet) -> Option<&LabelSelector> {
    set.spec.as_ref().map(|spec| &spec.selector)
}
