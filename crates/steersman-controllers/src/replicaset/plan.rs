//! How many Pods to create, or which ones to delete.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::ownership;

use super::ranking;
use crate::pod;
use jiff::Timestamp;

/// The most Pods created or deleted in one reconcile; the rest follows in the next one.
const BURST: usize = 500;

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
    let meta = template.metadata.unwrap_or_default();
    let set_name = set.metadata.name.as_deref().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{set_name}-")),
            namespace: set.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: ownership::controller_reference(set).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// The sizes of the batches in which `count` Pods are created: 1, 2, 4, 8 and so on, so that
/// a template that is refused is refused once and not five hundred times.
pub(crate) fn slow_start(count: usize) -> impl Iterator<Item = usize> {
    let sizes = std::iter::successors(Some(1_usize), |size| size.checked_mul(2));
    sizes.scan(count, |left, size| {
        let batch = size.min(*left);
        *left -= batch;
        (batch > 0).then_some(batch)
    })
}

/// The Pods that count as replicas.
pub(super) fn active(pods: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect()
}
