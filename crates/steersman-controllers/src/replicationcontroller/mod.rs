//! The ReplicationController controller: what ReplicaSets were before they were called so. It is
//! decided upon and carried out by the code of the [ReplicaSet controller](crate::replicaset).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use steersman::ownership::Selectors;
use steersman::{Controller, Metrics};

use crate::replicaset::reconcile::ReplicaWorker;

/// The ReplicationController controller.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let selectors = Selectors::by_labels(labels);
    let orphans = selectors.clone();
    Controller::of::<ReplicationController>()
        .named("replicationcontroller-controller")
        .observes(move |event| selectors.observe(event))
        .owns::<Pod>()
        .watches(move |pod: &Pod| orphans.of_orphan(&pod.metadata))
        .concurrency(5)
        .updates_status()
        .reconcile(ReplicaWorker::new(metrics))
}

/// The labels by which it claims what it controls.
fn labels(controller: &ReplicationController) -> Option<&BTreeMap<String, String>> {
    controller.spec.as_ref()?.selector.as_ref()
}
