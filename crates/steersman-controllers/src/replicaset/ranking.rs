//! Which Pods go first when there are too many.
//!
//! In this order: without a node before with one; pending, then unknown, then running; not
//! ready before ready; lower deletion cost; sharing a node with more siblings; ready for a
//! shorter time; restarted more often; younger. Times are compared by their order of magnitude,
//! so that Pods of about the same age are chosen by chance (their uid) and not always from the
//! newest rollout; restarts count only where ready times are the same.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::pod;

/// What users set to keep a Pod longer than its siblings.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts Pods so that the one to delete first comes first.
pub(super) fn first_to_go(
    pods: &[Arc<Pod>],
    related: &[Arc<Pod>],
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let mut siblings: HashMap<&str, usize> = HashMap::new();
    for pod in related.iter().filter(|pod| pod::is_active(pod)) {
        *siblings.entry(node_of(pod)).or_default() += 1;
    }
    let colocated = |pod: &Pod| siblings.get(node_of(pod)).copied().unwrap_or(0);
    let mut ranked = pods.to_vec();
    ranked.sort_by(|a, b| {
        let more_siblings = colocated(b).cmp(&colocated(a));
        rank(a).cmp(&rank(b)).then(more_siblings).then_with(|| by_history(a, b, now))
    });
    ranked
}

/// The smaller, the sooner it goes.
fn rank(pod: &Pod) -> (bool, u8, bool, i32) {
    let has_node = !node_of(pod).is_empty();
    (has_node, phase_rank(pod::phase(pod)), pod::is_ready(pod), deletion_cost(pod))
}

/// Which of two Pods goes first, by what they have been through.
fn by_history(a: &Pod, b: &Pod, now: Timestamp) -> Ordering {
    let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let ready = by_time((pod::ready_since(a), a), (pod::ready_since(b), b), now);
    let restarts = pod::max_restarts(b).cmp(&pod::max_restarts(a));
    ready.then(restarts).then_with(|| by_time((created(a), a), (created(b), b), now))
}

/// The later by orders of magnitude first; if they agree in that and yet differ, by chance.
fn by_time(a: (Option<Timestamp>, &Pod), b: (Option<Timestamp>, &Pod), now: Timestamp) -> Ordering {
    let (Some(since_a), Some(since_b)) = (a.0, b.0) else { return Ordering::Equal };
    if since_a == since_b {
        return Ordering::Equal;
    }
    let by_chance = || a.1.metadata.uid.cmp(&b.1.metadata.uid);
    magnitude(since_a, now).cmp(&magnitude(since_b, now)).then_with(by_chance)
}

fn phase_rank(phase: &str) -> u8 {
    match phase {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(DELETION_COST)?.parse().ok()).unwrap_or(0)
}

/// How long ago, as a power of two of nanoseconds.
fn magnitude(since: Timestamp, now: Timestamp) -> u32 {
    let nanoseconds = u128::try_from(now.duration_since(since).as_nanos()).unwrap_or(0);
    u128::BITS - nanoseconds.leading_zeros()
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}
