//! Why a Pod is removed, and when: objects and the time in, decisions out.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};

use crate::node::{readiness, taints};
use crate::pod::{is_terminal, node_name, phase};

/// How often Kubernetes looks.
const CHECK_PERIOD_SECONDS: i64 = 20;
/// How long a node may be missing before it is asked for.
const QUARANTINE_SECONDS: i64 = 40;
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Why a Pod is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It has ended, and too many have.
    Terminated,
    /// It is being deleted, and its node is out of service.
    OutOfService,
    /// Its node is gone.
    Orphaned,
    /// It is being deleted, and has no node.
    Unscheduled,
}

impl Reason {
    /// As Kubernetes counts it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::OutOfService => "out-of-service",
            Self::Orphaned => "orphaned",
            Self::Unscheduled => "unscheduled",
        }
    }
}

/// What is known of the node of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// It exists.
    There,
    /// It exists, is not ready, and somebody has said that it is out of service.
    OutOfService,
    /// There is none of that name.
    Gone,
}

/// Why a Pod is removed, if it is.
pub(super) fn reason(pod: &Pod, node: Whereabouts, too_many: bool) -> Option<Reason> {
    let meta = &pod.metadata;
    let leaves = meta.deletion_timestamp.is_some();
    if leaves && is_terminal(pod) && meta.deletion_grace_period_seconds == Some(0) {
        return None; // it waits for somebody's finalizer
    }
    match (node_name(pod), node) {
        _ if too_many => Some(Reason::Terminated),
        (Some(_), Whereabouts::OutOfService) if leaves => Some(Reason::OutOfService),
        (Some(_), Whereabouts::Gone) => Some(Reason::Orphaned),
        (None, _) if leaves => Some(Reason::Unscheduled),
        _ => None,
    }
}

/// When a Pod is removed of which that is known since then.
pub(super) fn due(reason: Reason, since: Timestamp) -> Timestamp {
    let look = since.as_second().div_euclid(CHECK_PERIOD_SECONDS) + 1;
    let look = look * CHECK_PERIOD_SECONDS;
    let due = if reason == Reason::Orphaned { look + QUARANTINE_SECONDS } else { look };
    Timestamp::from_second(due).unwrap_or(Timestamp::MAX)
}

/// Whether Pods that end on a node need not wait for it.
pub(super) fn out_of_service(node: &Node) -> bool {
    readiness(node) != Some("True") && taints(node).iter().any(|it| it.key == OUT_OF_SERVICE)
}

/// Whether a Pod has ended.
pub(super) fn has_ended(pod: &Pod) -> bool {
    !matches!(phase(pod), "Pending" | "Running" | "Unknown")
}

/// In which order Pods that have ended are removed: those that a kubelet has evicted first, then the
/// older ones.
pub(super) fn rank(pod: &Pod) -> (bool, Timestamp, String) {
    let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref());
    let evicted = phase(pod) == "Failed" && reason == Some("Evicted");
    let created = pod.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |at| at.0);
    (!evicted, created, pod.metadata.name.clone().unwrap_or_default())
}
