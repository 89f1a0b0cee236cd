//! The Deployment controller: moves Pods from one template to the next by scaling ReplicaSets.
//!
//! A template is identified by a hash ([`template`]); each has one ReplicaSet. [`plan`] decides
//! what happens to the ReplicaSets: [`rolling`] holds the arithmetic of a rolling update,
//! [`proportion`] that of scaling in the middle of one, [`revision`] numbers and forgets them,
//! [`rollback`] goes back to one, and [`status`] reports. Pods are the ReplicaSet controller's business.

mod plan;
mod proportion;
mod reconcile;
mod revision;
mod rollback;
mod rolling;
mod status;
mod template;
#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use steersman::Controller;
use steersman::ownership::Selectors;

/// The Deployment controller.
pub(crate) fn controller() -> Controller {
    let selectors = Selectors::new(selector);
    let orphans = selectors.clone();
    Controller::of::<Deployment>()
        .named("deployment-controller")
        .observes(move |event| selectors.observe(event))
        .owns::<ReplicaSet>()
        .watches(move |set: &ReplicaSet| orphans.of_orphan(&set.metadata))
        .concurrency(5)
        .updates_status()
        .reconcile(reconcile::reconcile)
}

/// The labels by which it claims what it controls.
fn selector(deployment: &Deployment) -> Option<&LabelSelector> {
    deployment.spec.as_ref().map(|spec| &spec.selector)
}
