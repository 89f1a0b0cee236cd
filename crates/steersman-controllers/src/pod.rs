//! Facts about Pods that several controllers ask for.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

/// Whether a Pod counts as available, and if not yet, when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It has been ready for long enough.
    Available,
    /// It is ready, and becomes available if it stays so for this long.
    In(Duration),
    /// It is not ready.
    NotReady,
}

/// The node that the Pod is bound to.
pub(crate) fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

/// The Pod's phase; empty if it has none.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether the Pod has ended for good.
pub(crate) fn is_terminal(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the Pod still counts as a replica: neither ended nor being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Whether the Pod is being deleted and has not ended yet.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    !is_terminal(pod) && pod.metadata.deletion_timestamp.is_some()
}

/// The Pod's `Ready` condition, if it is true.
pub(crate) fn ready_condition(pod: &Pod) -> Option<&PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether the Pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    ready_condition(pod).is_some()
}

/// When the Pod became ready, if it is.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    ready_condition(pod)?.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether the Pod has been ready for `min_ready_seconds`.
pub(crate) fn availability(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Availability {
    if !is_ready(pod) {
        return Availability::NotReady;
    }
    if min_ready_seconds <= 0 {
        return Availability::Available;
    }
    let min_ready = SignedDuration::from_secs(min_ready_seconds.into());
    let ready_for =
        ready_since(pod).map_or(SignedDuration::ZERO, |since| now.duration_since(since));
    match Duration::try_from(min_ready - ready_for) {
        Ok(rest) if !rest.is_zero() => Availability::In(rest),
        _ => Availability::Available,
    }
}

/// How often the Pod's containers were restarted, at most, and its sidecars.
pub(crate) fn max_restarts(pod: &Pod) -> (i32, i32) {
    let status = pod.status.as_ref();
    let most = |all: Option<&Vec<ContainerStatus>>, counts: &dyn Fn(&ContainerStatus) -> bool| {
        let counted = all.into_iter().flatten().filter(|container| counts(container));
        counted.map(|container| container.restart_count).max().unwrap_or(0)
    };
    let is_sidecar = |container: &ContainerStatus| {
        let all = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_ref());
        let own = all.into_iter().flatten().find(|own| own.name == container.name);
        own.is_some_and(|own| own.restart_policy.as_deref() == Some("Always"))
    };
    (
        most(status.and_then(|status| status.container_statuses.as_ref()), &|_| true),
        most(status.and_then(|status| status.init_container_statuses.as_ref()), &is_sidecar),
    )
}
