//! The status of a ReplicaSet, computed from its Pods.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pod::{self, Availability};

/// The condition that tells why Pods cannot be created or deleted.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Why the number of Pods could not be corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// `FailedCreate` or `FailedDelete`.
    pub(super) reason: &'static str,
    /// What went wrong.
    pub(super) message: String,
}

/// The status of `set` when these are its Pods.
pub(super) fn status(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    failure: Option<&Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let min_ready = min_ready_seconds(set);
    let count = |counts: &dyn Fn(&Pod) -> bool| {
        let counted = pods.iter().filter(|pod| counts(pod)).count();
        i32::try_from(counted).unwrap_or(i32::MAX)
    };
    let active = |also: fn(&Pod) -> bool| count(&|pod| pod::is_active(pod) && also(pod));
    let available = |pod: &Pod| pod::availability(pod, min_ready, now) == Availability::Available;
    let nonzero = |count: i32| (count != 0).then_some(count); // Kubernetes leaves zeros out
    ReplicaSetStatus {
        replicas: active(|_| true),
        fully_labeled_replicas: nonzero(count(&|pod| {
            pod::is_active(pod) && fully_labeled(set, pod)
        })),
        ready_replicas: nonzero(active(pod::is_ready)),
        available_replicas: nonzero(count(&|pod| pod::is_active(pod) && available(pod))),
        terminating_replicas: Some(count(&pod::is_terminating)),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, failure, now),
    }
}

/// When the next Pod that is ready becomes available, if nothing happens to it.
pub(super) fn next_available(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> Option<Duration> {
    let active = pods.iter().filter(|pod| pod::is_active(pod));
    active
        .filter_map(|pod| match pod::availability(pod, min_ready_seconds(set), now) {
            Availability::In(rest) => Some(rest),
            Availability::Available | Availability::NotReady => None,
        })
        .min()
}

fn min_ready_seconds(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0)
}

/// Whether the Pod has all labels of the template.
fn fully_labeled(set: &ReplicaSet, pod: &Pod) -> bool {
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref()?.metadata.as_ref());
    let Some(wanted) = template.and_then(|meta| meta.labels.as_ref()) else {
        return true;
    };
    let labels = pod.metadata.labels.as_ref();
    wanted.iter().all(|(key, value)| labels.and_then(|all| all.get(key)) == Some(value))
}

/// The conditions, with the failure or without it. A failure that lasts stays as it was first told.
fn conditions(
    set: &ReplicaSet,
    failure: Option<&Failure>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let current = set.status.as_ref().and_then(|status| status.conditions.clone());
    let mut conditions = current.unwrap_or_default();
    let is_failure = |condition: &ReplicaSetCondition| condition.type_ == REPLICA_FAILURE;
    match failure {
        None => conditions.retain(|condition| !is_failure(condition)),
        Some(_) if conditions.iter().any(is_failure) => {}
        Some(Failure { reason, message }) => conditions.push(ReplicaSetCondition {
            type_: REPLICA_FAILURE.into(),
            status: "True".into(),
            reason: Some((*reason).into()),
            message: Some(message.clone()),
            last_transition_time: Some(whole_seconds(now)),
        }),
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// The time as objects carry it.
fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
