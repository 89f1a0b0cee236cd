//! The disruption controller: how many of the Pods that a PodDisruptionBudget covers may go.
//!
//! The API server lets a Pod be evicted if the budget's status allows it, and writes it down there
//! ([`plan`] takes it into account until the Pod is gone or two minutes have passed); this
//! controller fills that status in. [`scale`] finds out how many Pods there should be, and
//! [`covered`] looks after the Pods themselves.

mod budgets;
mod covered;
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
use covered::CoveredPods;

/// A part of the disruption controller with a queue of its own.
pub(crate) const PODS: &str = "disruption-pod-controller";
/// Who tells of budgets.
const COMPONENT: &str = "controllermanager";

/// The disruption controller, both parts of it.
pub(crate) fn controllers() -> [Controller; 2] {
    let budgets = Budgets::default();
    [controller(budgets.clone()), pods(budgets)]
}

/// Fills in the status of budgets.
fn controller(budgets: Budgets) -> Controller {
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

/// Looks after Pods.
fn pods(budgets: Budgets) -> Controller {
    let known = budgets.clone();
    Controller::of::<Pod>()
        .named(PODS)
        .only(move |pod| covered::concerns(pod, &known))
        .reconcile(CoveredPods { budgets })
}
