//! The ReplicaSet controller: keeps as many Pods of one template as asked for.
//!
//! Kubernetes' own counts the Pods that it expects to appear or vanish, lest a late cache make
//! it create them twice. That is not needed here: before a key is reconciled again, the
//! framework waits until the cache shows what the last reconcile of that key wrote.
//!
//! [`replicated`] lets a ReplicationController be reconciled by the same code.

pub(crate) mod metrics;
mod plan;
mod ranking;
pub(crate) mod reconcile;
pub(crate) mod replicated;
mod status;
#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use steersman::ownership::Selectors;
use steersman::{Controller, Metrics};

use reconcile::ReplicaWorker;

/// The ReplicaSet controller.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let selectors = Selectors::new(selector);
    let orphans = selectors.clone();
    Controller::of::<ReplicaSet>()
        .named("replicaset-controller")
        .observes(move |event| selectors.observe(event))
        .owns::<Pod>()
        .watches(move |pod: &Pod| orphans.of_orphan(&pod.metadata))
        .concurrency(5)
        .updates_status()
        .reconcile(ReplicaWorker::new(metrics))
}

/// The labels by which it claims what it controls.
fn selector(set: &ReplicaSet) -> Option<&LabelSelector> {
    set.spec.as_ref().map(|spec| &spec.selector)
}
