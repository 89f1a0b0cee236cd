//! How many Pods to create, or which ones to delete.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;

use super::ranking;
use crate::pod;
use crate::pod_control::{self, BURST};

/// What a ReplicaSet does about its Pods.
#[derive(Debug)]
pub(super) enum Plan {
    /// The number is right.
    Nothing,
    /// Too few: create this many.
    Create(usize),
    /// Too many: delete these.
    Delete(Vec<Arc<Pod>>),
}

/// Compares the active Pods with the number wanted. `related` are the Pods of all ReplicaSets
/// with the same owner: among equals, the ones that share a node with most others go first.
pub(super) fn plan(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    related: &[Arc<Pod>],
    now: Timestamp,
) -> Plan {
    let wanted = desired(set);
    if active.len() < wanted {
        return Plan::Create((wanted - active.len()).min(BURST));
    }
    let surplus = (active.len() - wanted).min(BURST);
    if surplus == 0 {
        return Plan::Nothing;
    }
    let mut ranked = ranking::first_to_go(active, related, now);
    ranked.truncate(surplus);
    Plan::Delete(ranked)
}

/// How many Pods the ReplicaSet asks for; one unless it says otherwise.
pub(super) fn desired(set: &ReplicaSet) -> usize {
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    usize::try_from(replicas).unwrap_or(0)
}

/// A Pod as the ReplicaSet's template describes it; the server completes its name.
pub(super) fn new_pod(set: &ReplicaSet) -> Pod {
    let template = set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
    pod_control::from_template(&set.metadata, template)
}

/// The Pods that count as replicas.
pub(super) fn active(pods: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect()
}
