//! The disruption controller: how many of the Pods that a PodDisruptionBudget covers may go.
//!
//! The API server lets a Pod be evicted if the budget's status allows it, and writes it down there
//! ([`plan`] takes it into account until the Pod is gone or two minutes have passed); this
//! controller fills that status in. [`scale`] finds out how many Pods there should be.

mod budgets;
mod plan;
mod reconcile;
mod scale;
#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use steersman::Controller;

use budgets::Budgets;

/// The disruption controller.
pub(crate) fn controller() -> Controller {
    let budgets = Budgets::default();
    let covering = budgets.clone();
    Controller::of::<PodDisruptionBudget>()
        .named("disruption-controller")
        .observes(move |event| budgets.observe(event))
        .watches(move |pod: &Pod| covering.of_pod(&pod.metadata))
        .reads::<ReplicationController>()
        .reads::<Deployment>()
        .reads::<ReplicaSet>()
        .reads::<StatefulSet>()
        .updates_status()
        .reconcile(reconcile::reconcile)
}
