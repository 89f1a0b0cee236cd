//! The StatefulSet controller: Pods with names, ordinals and claims of their own.
//!
//! [`identity`] says who a Pod is, [`claims`] which volumes it has and who owns them, [`plan`]
//! what happens next; templates are kept as revisions by [`history`](crate::history), which tells
//! Pods that are updated from those that are not.

mod act;
mod claims;
mod identity;
mod plan;
mod reconcile;
mod revision;
mod status;
#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use steersman::Controller;
use steersman::ownership::Selectors;

/// The StatefulSet controller.
pub(crate) fn controller() -> Controller {
    let selectors = Selectors::new(selector);
    let orphans = selectors.clone();
    Controller::of::<StatefulSet>()
        .named("statefulset-controller")
        .observes(move |event| selectors.observe(event))
        .owns::<Pod>()
        .watches(move |pod: &Pod| orphans.of_orphan(&pod.metadata))
        .reads::<ControllerRevision>()
        .reads::<PersistentVolumeClaim>()
        .concurrency(5)
        .updates_status()
        .reconcile(reconcile::reconcile)
}

/// The labels by which it claims what it controls.
fn selector(set: &StatefulSet) -> Option<&LabelSelector> {
    set.spec.as_ref().map(|spec| &spec.selector)
}
