//! The arithmetic of a rolling update.
//!
//! Worked example: 10 replicas, maxSurge 25 %, maxUnavailable 25 %. There may be 10 + 3 Pods
//! (the surge rounds up) and there must be 10 − 2 available ones (the unavailability rounds
//! down). The new ReplicaSet starts with 3; the old one goes from 10 to 8 at once. Whenever a
//! new Pod becomes available, an old one may go, and whenever an old one is gone, a new one may
//! come.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::intstr::{Round, scaled};

/// A ReplicaSet is to have this many replicas.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// Which ReplicaSet.
    pub(super) set: Arc<ReplicaSet>,
    /// How many replicas.
    pub(super) replicas: i32,
}

/// How many replicas the Deployment asks for; one unless it says otherwise.
pub(super) fn desired(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

/// Whether the Deployment replaces all Pods at once instead of one after another.
pub(super) fn is_recreate(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

/// The most Pods there may be.
pub(super) fn max_pods(deployment: &Deployment) -> i32 {
    desired(deployment).saturating_add(max_surge(deployment))
}

/// How many Pods there may be beyond the desired number.
pub(super) fn max_surge(deployment: &Deployment) -> i32 {
    fenceposts(deployment).0
}

/// How many of the desired Pods may be unavailable.
pub(super) fn max_unavailable(deployment: &Deployment) -> i32 {
    fenceposts(deployment).1.min(desired(deployment))
}

/// Surge and unavailability. Both zero would forbid every step, so one Pod may then be missing.
fn fenceposts(deployment: &Deployment) -> (i32, i32) {
    if is_recreate(deployment) {
        return (0, 0);
    }
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let quarter = IntOrString::String("25%".into());
    let surge = rolling.and_then(|r| r.max_surge.as_ref()).unwrap_or(&quarter);
    let unavailable = rolling.and_then(|r| r.max_unavailable.as_ref()).unwrap_or(&quarter);
    let desired = desired(deployment);
    match (scaled(surge, desired, Round::Up), scaled(unavailable, desired, Round::Down)) {
        (0, 0) => (0, 1),
        both => both,
    }
}

/// How many replicas a ReplicaSet asks for.
pub(super) fn spec_replicas(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

/// How many Pods of a ReplicaSet are available.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0).max(0)
}

/// How many replicas several ReplicaSets ask for together.
pub(super) fn total<'a>(sets: impl IntoIterator<Item = &'a Arc<ReplicaSet>>) -> i32 {
    sum(sets.into_iter().map(|set| spec_replicas(set)))
}

/// A sum that is no larger than a number of replicas can be.
pub(super) fn sum(counts: impl IntoIterator<Item = i32>) -> i32 {
    counts.into_iter().fold(0, i32::saturating_add)
}

/// How many replicas the new ReplicaSet should have now, which has `current` of them while
/// the old ones have `old_total`.
pub(super) fn new_replicas(deployment: &Deployment, current: i32, old_total: i32) -> i32 {
    let desired = desired(deployment);
    if is_recreate(deployment) || current >= desired {
        return desired;
    }
    let room = max_pods(deployment).saturating_sub(old_total).saturating_sub(current);
    current + room.clamp(0, desired - current)
}

/// Scales the old ReplicaSets down as far as availability allows: first the replicas that are
/// not available anyway, then the others, always from the oldest ReplicaSet on.
pub(super) fn scale_down_old(
    deployment: &Deployment,
    new: &Arc<ReplicaSet>,
    old: &[Arc<ReplicaSet>],
) -> Vec<Scale> {
    let min_available = desired(deployment) - max_unavailable(deployment);
    let new_unavailable = spec_replicas(new) - available(new);
    let spare = total(old).saturating_add(spec_replicas(new));
    let spare = spare.saturating_sub(min_available).saturating_sub(new_unavailable);
    if spare <= 0 || total(old) == 0 {
        return Vec::new();
    }
    let mut left: Vec<i32> = old.iter().map(|set| spec_replicas(set)).collect();
    if remove_unhealthy(old, &mut left, spare) {
        let all_available = sum(old.iter().chain([new]).map(|set| available(set)));
        remove_available(&mut left, all_available - min_available);
    }
    let scales = old.iter().zip(left).filter(|(set, left)| spec_replicas(set) != *left);
    scales.map(|(set, replicas)| Scale { set: Arc::clone(set), replicas }).collect()
}

/// Takes up to `spare` replicas that are not available. Says whether all that was looked at can be
/// counted on: a ReplicaSet with more available Pods than it asks for has just been scaled down, and
/// some of them are about to go.
fn remove_unhealthy(old: &[Arc<ReplicaSet>], left: &mut [i32], mut spare: i32) -> bool {
    for (set, left) in old.iter().zip(left) {
        if spare == 0 {
            break;
        }
        if *left > 0 && available(set) > *left {
            return false;
        }
        let unhealthy = (*left - available(set)).clamp(0, spare);
        *left -= unhealthy;
        spare -= unhealthy;
    }
    true
}

/// Takes up to `spare` replicas, available or not.
fn remove_available(left: &mut [i32], mut spare: i32) {
    for left in left {
        let taken = (*left).clamp(0, spare.max(0));
        *left -= taken;
        spare -= taken;
    }
}
