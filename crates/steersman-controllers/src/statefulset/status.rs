//! The status of a StatefulSet, computed from its Pods.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::identity::{desired, revision_of, spec};
use super::plan::is_running_and_ready;
use crate::pod::{self, Availability};

/// The names of the revisions, and how often such a name was taken.
#[derive(Clone, Debug)]
pub(super) struct Revisions {
    pub(super) current: String,
    pub(super) update: String,
    pub(super) collisions: i32,
}

/// What has just been done, and no cache shows yet. A status that knows of it need not be written
/// again when it is seen: of a set that starts in order that is half of what is written, and its next
/// Pod waits for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// The revisions of the Pods that were created.
    pub(super) created: Vec<String>,
    /// How many Pods were deleted to be updated.
    pub(super) leaving: usize,
}

/// The status of `set` when these are its Pods and this was done to them.
pub(super) fn status(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    revisions: &Revisions,
    done: &Done,
    now: Timestamp,
) -> StatefulSetStatus {
    let count = |counts: &dyn Fn(&Pod) -> bool| {
        let counted = pods.iter().filter(|pod| counts(pod)).count();
        i32::try_from(counted).unwrap_or(i32::MAX)
    };
    let is_created = |pod: &Pod| !pod::phase(pod).is_empty();
    let is_of = |pod: &Pod, revision: &str| {
        is_created(pod) && pod.metadata.deletion_timestamp.is_none() && revision_of(pod) == revision
    };
    let available = |pod: &Pod| pod::availability(pod, min_ready_seconds(set), now);
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let created = |revision: &str| number(done.created.iter().filter(|of| *of == revision).count());
    let replicas = count(&is_created) + number(done.created.len());
    let ready = count(&is_running_and_ready);
    let updated = count(&|pod| is_of(pod, &revisions.update)) + created(&revisions.update);
    let mut current = count(&|pod| is_of(pod, &revisions.current)) + created(&revisions.current)
        - number(done.leaving);
    let mut current_revision = &revisions.current;
    let arrived = [updated, ready, replicas].iter().all(|count| *count == desired(set));
    if is_rolling(set) && arrived {
        current = updated;
        current_revision = &revisions.update;
    }
    let nonzero = |count: i32| (count != 0).then_some(count); // Kubernetes leaves zeros out
    StatefulSetStatus {
        replicas,
        ready_replicas: nonzero(ready),
        available_replicas: Some(count(&|pod| {
            is_running_and_ready(pod) && available(pod) == Availability::Available
        })),
        current_replicas: nonzero(current),
        updated_replicas: nonzero(updated),
        current_revision: Some(current_revision.clone()),
        update_revision: Some(revisions.update.clone()),
        collision_count: Some(revisions.collisions),
        observed_generation: set.metadata.generation,
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
    }
}

fn is_rolling(set: &StatefulSet) -> bool {
    let strategy = spec(set).and_then(|spec| spec.update_strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
}

/// When the next Pod that is ready becomes available, if nothing happens to it.
pub(super) fn next_available(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> Option<Duration> {
    pods.iter()
        .filter_map(|pod| match pod::availability(pod, min_ready_seconds(set), now) {
            Availability::In(rest) => Some(rest),
            Availability::Available | Availability::NotReady => None,
        })
        .min()
}

fn min_ready_seconds(set: &StatefulSet) -> i32 {
    spec(set).and_then(|spec| spec.min_ready_seconds).unwrap_or(0)
}
