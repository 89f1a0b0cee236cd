//! Scaling a Deployment while several of its ReplicaSets have Pods.
//!
//! Each gets a share of the change in proportion to its size, so that a rollout that is stuck
//! halfway stays halfway. Worked example: sizes 10 and 5 (of at most 15) when the Deployment
//! grows to at most 30 become 20 and 10. What rounding leaves over goes to the largest.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::revision::{self, MAX};
use super::rolling::{Scale, desired, max_pods, spec_replicas, total};
use super::template::age;

/// The sizes of the active ReplicaSets for the Deployment's new size.
pub(super) fn proportional(deployment: &Deployment, active: &[Arc<ReplicaSet>]) -> Vec<Scale> {
    let allowed = match desired(deployment) {
        0 => 0,
        _ => max_pods(deployment),
    };
    let change = allowed - total(active);
    let mut sets = active.to_vec();
    if change > 0 {
        sets.sort_by_key(|set| Reverse((spec_replicas(set), age(set))));
    } else {
        sets.sort_by_key(|set| (Reverse(spec_replicas(set)), age(set)));
    }
    let mut done = 0_i32;
    let mut scales = Vec::new();
    for set in sets {
        let share = share(deployment, &set, change, done);
        done = done.saturating_add(share);
        scales.push(Scale { replicas: spec_replicas(&set).saturating_add(share), set });
    }
    if let Some(largest) = scales.first_mut() {
        largest.replicas = largest.replicas.saturating_add(change.saturating_sub(done)).max(0);
    }
    scales
}

/// A ReplicaSet's share of the change, of which `done` is given out already.
fn share(deployment: &Deployment, set: &ReplicaSet, change: i32, done: i32) -> i32 {
    let fraction = fraction(deployment, set);
    let left = change.saturating_sub(done);
    if change > 0 { fraction.min(left) } else { fraction.max(left) }
}

/// How much a ReplicaSet grows or shrinks if it keeps its part of the whole.
fn fraction(deployment: &Deployment, set: &ReplicaSet) -> i32 {
    let size = i128::from(spec_replicas(set));
    if desired(deployment) == 0 {
        return i32::try_from(-size).unwrap_or(0);
    }
    let reported = deployment.status.as_ref().and_then(|status| status.replicas);
    let before = revision::number(set, MAX).filter(|max| *max > 0).or(reported).unwrap_or(0);
    if before <= 0 {
        return 0;
    }
    let before = i128::from(before);
    let after = i128::from(max_pods(deployment));
    let rounded = (2 * size * after + before) / (2 * before);
    i32::try_from(rounded - size).unwrap_or(i32::MAX)
}
