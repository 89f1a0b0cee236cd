//! The status of a Pod that has ended: because it was deleted, because its time was up, or because
//! its node did not take it.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::addresses::Rejection;

/// Why a Pod has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was told to, and ended well.
    Told,
    /// It has run for as long as it may.
    DeadlineExceeded,
}

impl End {
    /// The phase, and the reason of the conditions that are no longer true.
    fn phase(&self) -> (&'static str, &'static str) {
        match self {
            Self::Told => ("Succeeded", "PodCompleted"),
            Self::DeadlineExceeded => ("Failed", "PodFailed"),
        }
    }

    /// Reason and message of the Pod's status.
    pub(super) fn why(&self) -> Option<(&'static str, &'static str)> {
        let message = "Pod was active on the node longer than the specified deadline";
        (*self == Self::DeadlineExceeded).then_some(("DeadlineExceeded", message))
    }
}

/// Whether a Pod has ended for good.
pub(super) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether anything of a Pod ever ran.
pub(super) fn has_started(pod: &Pod) -> bool {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    containers.is_some_and(|all| !all.is_empty())
}

/// The status of a Pod whose containers have all ended.
pub(super) fn ended(pod: &Pod, end: &End, now: &Time) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    let (phase, reason) = end.phase();
    status.phase = Some(phase.into());
    status.observed_generation = pod.metadata.generation;
    if let Some((reason, message)) = end.why() {
        status.reason = Some(reason.into());
        status.message = Some(message.into());
    }
    let containers = status.container_statuses.iter_mut();
    let containers = containers.chain(&mut status.init_container_statuses);
    for container in containers.chain(&mut status.ephemeral_container_statuses).flatten() {
        finish(container, now);
    }
    let initialized = (*end == End::Told).then_some(reason);
    for (type_, holds, reason) in [
        ("PodReadyToStartContainers", "False", None),
        ("Initialized", "True", initialized),
        ("Ready", "False", Some(reason)),
        ("ContainersReady", "False", Some(reason)),
    ] {
        let conditions = status.conditions.get_or_insert_default();
        let old = conditions.iter().position(|condition| condition.type_ == type_);
        let same = old.map(|index| &conditions[index]).filter(|old| old.status == holds);
        let since = same.and_then(|old| old.last_transition_time.clone());
        let condition = PodCondition {
            type_: type_.into(),
            status: holds.into(),
            reason: reason.map(str::to_owned),
            last_transition_time: since.or_else(|| Some(now.clone())),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        };
        match old {
            Some(index) => conditions[index] = condition,
            None => conditions.push(condition),
        }
    }
    status
}

/// Ends a container that runs.
fn finish(container: &mut ContainerStatus, now: &Time) {
    let Some(running) = container.state.as_ref().and_then(|state| state.running.as_ref()) else {
        return;
    };
    let terminated = ContainerStateTerminated {
        exit_code: 0,
        reason: Some("Completed".into()),
        started_at: running.started_at.clone(),
        finished_at: Some(now.clone()),
        container_id: container.container_id.clone(),
        ..ContainerStateTerminated::default()
    };
    container.state =
        Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
    container.ready = false;
    container.started = Some(false);
}

/// The status of a Pod that its node does not take.
pub(super) fn rejected(pod: &Pod, rejection: &Rejection, now: &Time) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    status.start_time.get_or_insert_with(|| now.clone());
    status.observed_generation = pod.metadata.generation;
    status.phase = Some("Failed".into());
    status.reason = Some(rejection.reason().into());
    status.message = Some(format!("Pod was rejected: {rejection}"));
    status
}
