//! Which Pods of a Job go first when there are too many: those without an index or with one that
//! another has too, then those that are less far.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::Pod;

use super::facts::{is_indexed, valid_index};
use crate::pod;

/// The Pods to remove so that at least this many go.
pub(super) fn to_remove(spec: &JobSpec, active: &[Arc<Pod>], at_least: usize) -> Vec<Arc<Pod>> {
    let mut removed = Vec::new();
    let mut left = Vec::new();
    if is_indexed(spec) {
        let mut by_index: BTreeMap<u32, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in active {
            match valid_index(pod, spec) {
                Some(index) => by_index.entry(index).or_default().push(Arc::clone(pod)),
                None => removed.push(Arc::clone(pod)),
            }
        }
        for mut same in by_index.into_values() {
            same.sort_by_cached_key(|pod| rank(pod));
            left.extend(same.pop());
            removed.append(&mut same);
        }
    } else {
        left = active.to_vec();
    }
    if removed.len() < at_least {
        left.sort_by_cached_key(|pod| rank(pod));
        left.truncate(at_least - removed.len());
        removed.append(&mut left);
    }
    removed
}

/// The smaller, the sooner it goes.
type Rank =
    (bool, u8, bool, Reverse<Option<Timestamp>>, Reverse<(i32, i32)>, Reverse<Option<Timestamp>>);

fn rank(pod: &Pod) -> Rank {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let phase = match pod::phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    (
        node.is_some(),
        phase,
        pod::is_ready(pod),
        Reverse(pod::ready_since(pod)),
        Reverse(pod::max_restarts(pod)),
        Reverse(created),
    )
}
