//! Whether a node has room for what a Pod wants.
//!
//! Those who wait for room are served in a kubelet's order: who wants no more than before, then by
//! priority, then the guaranteed, then who has waited longest.

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use steersman_scheduler::framework::{PodRequests, Resources};

use super::sizes::{PENDING, Sizes};
use crate::addresses::check_limits;
use crate::rejection::Rejection;

/// A Pod on the same node.
#[derive(Clone, Debug)]
pub(in crate::pods) struct Neighbour {
    pub(in crate::pods) pod: Arc<Pod>,
    pub(in crate::pods) sizes: Sizes,
}

/// Who is served first, the least.
type Rank = (bool, Reverse<i32>, bool, Timestamp);

/// Whether a Pod that has been given `sizes` can be given what it wants, beside others and after those
/// that come before it.
pub(super) fn fits(
    pod: &Pod,
    sizes: &Sizes,
    others: &[Neighbour],
    allocatable: &Resources,
) -> Result<(), Rejection> {
    let own = rank(pod, sizes);
    let mut held: Vec<Resources> = others.iter().map(Neighbour::held).collect();
    let mut first: Vec<usize> = (0..others.len())
        .filter(|place| {
            let other = &others[*place];
            other.sizes.allocated.differs(&other.pod) && rank(&other.pod, &other.sizes) < own
        })
        .collect();
    first.sort_by_key(|place| rank(&others[*place].pod, &others[*place].sizes));
    let has = PodRequests::of(&sizes.allocated.applied(pod)).asked;
    for place in first {
        let wanted = wanted(&others[place].pod);
        let beside = held.iter().enumerate().filter(|(other, _)| *other != place);
        let beside = beside.map(|(_, held)| held).chain([&has]);
        if check_limits(allocatable, &wanted, beside).is_ok() {
            held[place] = wanted;
        }
    }
    check_limits(allocatable, &wanted(pod), held.iter())
}

impl Neighbour {
    /// What it has, and what it was given.
    fn held(&self) -> Resources {
        PodRequests::of(&self.sizes.allocated.applied(&self.pod)).asked
    }
}

/// What a Pod asks for, whatever it has.
fn wanted(pod: &Pod) -> Resources {
    PodRequests::of(&Pod { status: None, ..pod.clone() }).asked
}

fn rank(pod: &Pod, sizes: &Sizes) -> Rank {
    let wants = wanted(pod);
    let given = wanted(&sizes.allocated.applied(pod));
    let grows = wants.milli_cpu() > given.milli_cpu() || wants.memory() > given.memory();
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
    let status = pod.status.as_ref();
    let class = status.and_then(|status| status.qos_class.as_deref());
    let mut conditions = status.and_then(|it| it.conditions.as_ref()).into_iter().flatten();
    let pending = conditions.find(|condition| condition.type_ == PENDING);
    let since = pending.and_then(|pending| pending.last_transition_time.as_ref());
    let since = since.map_or(Timestamp::MAX, |time| time.0);
    (grows, Reverse(priority), class != Some("Guaranteed"), since)
}
