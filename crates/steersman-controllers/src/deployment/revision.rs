//! Revisions: the annotations that number ReplicaSets, and which of them are forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::{rolling, template};

/// The number of the rollout that a ReplicaSet stands for, and that a Deployment is at.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Earlier numbers of a ReplicaSet that was rolled back to.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The most characters of a history.
const HISTORY_MAX: usize = 2000;
/// The Deployment's replicas when the ReplicaSet was last scaled.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The most Pods the Deployment allowed when the ReplicaSet was last scaled.
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// What `kubectl apply` remembers; it belongs to the Deployment alone.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Which revision a Deployment is to go back to; zero is the one before.
pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// Annotations of a Deployment that its ReplicaSets do not inherit.
const NOT_INHERITED: [&str; 6] =
    [REVISION, REVISION_HISTORY, DESIRED, MAX, LAST_APPLIED, ROLLBACK_TO];

/// Whether ReplicaSets have an annotation from their Deployment.
pub(super) fn is_inherited(annotation: &str) -> bool {
    !NOT_INHERITED.contains(&annotation)
}

/// A ReplicaSet's revision; zero if it has none.
pub(super) fn revision_of(set: &ReplicaSet) -> i64 {
    annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A number in an annotation of a ReplicaSet.
pub(super) fn number(set: &ReplicaSet, name: &str) -> Option<i32> {
    annotation(set, name)?.parse().ok()
}

fn annotation<'a>(set: &'a ReplicaSet, name: &str) -> Option<&'a str> {
    set.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The annotations that say for how large a Deployment a ReplicaSet was scaled.
pub(super) fn size_annotations(deployment: &Deployment) -> BTreeMap<String, String> {
    let desired = rolling::desired(deployment);
    let max = rolling::max_pods(deployment);
    BTreeMap::from([(DESIRED.into(), desired.to_string()), (MAX.into(), max.to_string())])
}

/// The annotations that the ReplicaSet of the current template should have, apart from those
/// about its size. `existing` is that ReplicaSet, if it exists.
pub(super) fn new_set_annotations(
    deployment: &Deployment,
    existing: Option<&ReplicaSet>,
    old: &[Arc<ReplicaSet>],
) -> BTreeMap<String, String> {
    let inherited = deployment.metadata.annotations.iter().flatten();
    let inherited = inherited.filter(|(name, _)| is_inherited(name));
    let mut wanted: BTreeMap<_, _> = inherited.map(|(k, v)| (k.clone(), v.clone())).collect();
    let next = old.iter().map(|set| revision_of(set)).max().unwrap_or(0).saturating_add(1);
    let current = existing.map_or(0, revision_of);
    wanted.insert(REVISION.into(), current.max(next).to_string());
    if let Some(set) = existing.filter(|_| current > 0 && current < next) {
        let earlier = annotation(set, REVISION_HISTORY).unwrap_or_default();
        wanted.insert(REVISION_HISTORY.into(), remember(earlier, current));
    }
    wanted
}

/// A history with one revision more, and without its oldest ones if it gets too long.
fn remember(earlier: &str, revision: i64) -> String {
    let revision = revision.to_string();
    let mut kept = earlier;
    while !kept.is_empty() && kept.len() + 1 + revision.len() > HISTORY_MAX {
        kept = kept.split_once(',').map_or("", |(_, newer)| newer);
    }
    if kept.is_empty() { revision } else { format!("{kept},{revision}") }
}

/// The old ReplicaSets beyond the history limit that have nothing left to do, oldest first.
pub(super) fn to_forget(deployment: &Deployment, old: &[Arc<ReplicaSet>]) -> Vec<Arc<ReplicaSet>> {
    let limit = deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(usize::MAX);
    let alive = old.iter().filter(|set| set.metadata.deletion_timestamp.is_none());
    let mut alive: Vec<_> = alive.cloned().collect();
    alive.sort_by_key(|set| (revision_of(set), template::age(set)));
    let surplus = alive.len().saturating_sub(limit);
    alive.truncate(surplus);
    alive.retain(|set| is_idle(set));
    alive
}

/// Whether a ReplicaSet has no Pods, wants none, and knows that.
fn is_idle(set: &ReplicaSet) -> bool {
    let status = set.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    rolling::spec_replicas(set) == 0
        && status.is_none_or(|status| status.replicas == 0)
        && observed >= set.metadata.generation
}
