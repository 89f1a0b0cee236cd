//! Kinds that keep a number of Pods of one template: ReplicaSet, and ReplicationController, which
//! was there before it and is decided upon as if it were one.

use std::borrow::Cow;

use k8s_openapi::api::apps::v1::{
    ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus,
};
use k8s_openapi::api::core::v1::{
    ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Serialize;
use steersman::Object;

/// A kind that can be seen as a ReplicaSet.
pub(crate) trait Replicated: Object {
    /// What its status is.
    type Status: Serialize;

    /// The ReplicaSet that asks for the same.
    fn as_set(&self) -> Cow<'_, ReplicaSet>;

    /// The labels by which it claims Pods.
    fn selector(&self) -> Option<Cow<'_, LabelSelector>>;

    /// Its status, from that of the ReplicaSet.
    fn status_of(status: ReplicaSetStatus) -> Self::Status;
}

impl Replicated for ReplicaSet {
    type Status = ReplicaSetStatus;

    fn as_set(&self) -> Cow<'_, ReplicaSet> {
        Cow::Borrowed(self)
    }

    fn selector(&self) -> Option<Cow<'_, LabelSelector>> {
        self.spec.as_ref().map(|spec| Cow::Borrowed(&spec.selector))
    }

    fn status_of(status: ReplicaSetStatus) -> ReplicaSetStatus {
        status
    }
}

impl Replicated for ReplicationController {
    type Status = ReplicationControllerStatus;

    fn as_set(&self) -> Cow<'_, ReplicaSet> {
        let spec = self.spec.as_ref().map(|spec| ReplicaSetSpec {
            replicas: spec.replicas,
            min_ready_seconds: spec.min_ready_seconds,
            selector: selector_of(self).unwrap_or_default(),
            template: spec.template.clone(),
        });
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
        let conditions = conditions.map(|all| all.iter().map(of_controller).collect());
        Cow::Owned(ReplicaSet {
            metadata: self.metadata.clone(),
            spec,
            status: Some(ReplicaSetStatus { conditions, ..ReplicaSetStatus::default() }),
        })
    }

    fn selector(&self) -> Option<Cow<'_, LabelSelector>> {
        selector_of(self).map(Cow::Owned)
    }

    fn status_of(status: ReplicaSetStatus) -> ReplicationControllerStatus {
        let conditions = status.conditions;
        ReplicationControllerStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            observed_generation: status.observed_generation,
            conditions: conditions.map(|all| all.into_iter().map(of_set).collect()),
        }
    }
}

/// A ReplicationController selects by labels alone.
pub(crate) fn selector_of(controller: &ReplicationController) -> Option<LabelSelector> {
    let labels = controller.spec.as_ref()?.selector.clone()?;
    Some(LabelSelector { match_labels: Some(labels), match_expressions: None })
}

fn of_controller(condition: &ReplicationControllerCondition) -> ReplicaSetCondition {
    let ReplicationControllerCondition { type_, status, reason, message, last_transition_time } =
        condition.clone();
    ReplicaSetCondition { type_, status, reason, message, last_transition_time }
}

fn of_set(condition: ReplicaSetCondition) -> ReplicationControllerCondition {
    let ReplicaSetCondition { type_, status, reason, message, last_transition_time } = condition;
    ReplicationControllerCondition { type_, status, reason, message, last_transition_time }
}
