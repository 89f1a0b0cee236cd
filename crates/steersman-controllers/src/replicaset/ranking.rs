//! Which Pods go first when there are too many.
//!
//! In this order: without a node before with one; pending, then unknown, then running; not
//! ready before ready; lower deletion cost; sharing a node with more siblings; ready for a
//! shorter time; restarted more often; younger. Times are compared by their order of magnitude,
//! so that Pods of about the same age are chosen by chance (a uid) and not always from the
//! newest rollout; restarts count only where ready times are the same.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
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
    let standing = |pod: &Pod| (rank(pod), Reverse(colocated(pod)));
    let readiness = |pod: &Pod| (standing(pod), ready_since(pod));
    let age = |pod: &Pod| (readiness(pod), pod::max_restarts(pod), created(pod));
    let (chance_of_readiness, chance_of_age) = (chances(pods, readiness), chances(pods, age));
    let mut ranked = pods.to_vec();
    ranked.sort_by_cached_key(|pod| {
        let ready = (magnitude(ready_since(pod), now), chance_of_readiness.get(&readiness(pod)));
        let created = (magnitude(created(pod), now), chance_of_age.get(&age(pod)));
        let uid = pod.metadata.uid.clone();
        (standing(pod), ready, Reverse(pod::max_restarts(pod)), created, uid)
    });
    ranked
}

/// What decides among times of the same order of magnitude: the smallest uid of the Pods that have
/// all in common up to that time. Of two Pods that is the uid; of many it is still an order, which
/// it would not be if uids were compared only where times differ.
fn chances<C: Hash + Eq>(
    pods: &[Arc<Pod>],
    class: impl Fn(&Pod) -> C,
) -> HashMap<C, Option<String>> {
    let mut chances: HashMap<C, Option<String>> = HashMap::new();
    for pod in pods {
        let uid = &pod.metadata.uid;
        let chance = chances.entry(class(pod)).or_insert_with(|| uid.clone());
        if uid < chance {
            chance.clone_from(uid);
        }
    }
    chances
}

/// The smaller, the sooner it goes.
fn rank(pod: &Pod) -> (bool, u8, bool, i32) {
    let has_node = !node_of(pod).is_empty();
    (has_node, phase_rank(pod::phase(pod)), pod::is_ready(pod), deletion_cost(pod))
}

/// Since when a Pod is ready, if it is.
fn ready_since(pod: &Pod) -> Option<Timestamp> {
    pod::ready_since(pod).filter(|_| pod::is_ready(pod))
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
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

/// How long ago, as a power of two of nanoseconds; what has no time comes first.
fn magnitude(since: Option<Timestamp>, now: Timestamp) -> Option<u32> {
    let nanoseconds = u128::try_from(now.duration_since(since?).as_nanos()).unwrap_or(0);
    Some(u128::BITS - nanoseconds.leading_zeros())
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}
