//! Which Pods go first when there are too many.
//!
//! In this order: without a node before with one; pending, then unknown, then running; not
//! ready before ready; lower deletion cost; sharing a node with more siblings; ready for a
//! shorter time; restarted more often; younger. Times are compared by their order of magnitude,
//! so that Pods of about the same age are chosen by chance (their uid) and not always from the
//! newest rollout.

use std::cmp::Reverse;
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
    let mut ranked = pods.to_vec();
    ranked.sort_by_cached_key(|pod| {
        let colocated = siblings.get(node_of(pod)).copied().unwrap_or(0);
        rank(pod, colocated, now)
    });
    ranked
}

/// The smaller, the sooner it goes.
type Rank = (bool, u8, bool, i32, Reverse<usize>, u32, Reverse<i32>, u32, String);

fn rank(pod: &Pod, colocated: usize, now: Timestamp) -> Rank {
    let ready = pod::is_ready(pod);
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (
        !node_of(pod).is_empty(),
        phase_rank(pod::phase(pod)),
        ready,
        deletion_cost(pod),
        Reverse(colocated),
        pod::ready_since(pod).map_or(0, |since| magnitude(since, now)),
        Reverse(pod::max_restarts(pod)),
        created.map_or(0, |created| magnitude(created, now)),
        pod.metadata.uid.clone().unwrap_or_default(),
    )
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

/// How long ago, as a power of two of seconds.
fn magnitude(since: Timestamp, now: Timestamp) -> u32 {
    let seconds = u64::try_from(now.duration_since(since).as_secs()).unwrap_or(0);
    u64::BITS - seconds.leading_zeros()
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}
