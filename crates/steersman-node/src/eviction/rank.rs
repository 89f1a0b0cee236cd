//! Which Pods are evicted first.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::Pod;
use steersman_values::Quantity;

use super::requests::request;
use super::signal::{Disks, Signal};
use super::usage::Usages;

/// What decides, in this order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Those of which nothing is known go first, then those that use more than they asked for.
    moderate: Moderation,
    priority: i32,
    /// Those that use the most beyond what they asked for.
    excess: Option<Reverse<Quantity>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Moderation {
    Unknown,
    Exceeds,
    Moderate,
}

/// Puts Pods into the order in which they are evicted when something is short.
pub(crate) fn rank(pods: &mut [&Pod], usages: &Usages, signal: Signal, disks: Disks) {
    pods.sort_by_cached_key(|pod| ranked(pod, usages, signal, disks));
}

fn ranked(pod: &Pod, usages: &Usages, signal: Signal, disks: Disks) -> Rank {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
    let usage = pod.metadata.uid.as_ref().and_then(|uid| usages.get(uid));
    let Some(usage) = usage else {
        // For process ids, nobody asks for any: the priority goes before.
        let unknown = signal != Signal::PidAvailable;
        let moderate = if unknown { Moderation::Unknown } else { Moderation::Moderate };
        return Rank { moderate, priority, excess: None };
    };
    let used = Quantity::parse(&usage.of(pod, signal, disks).to_string()).unwrap_or(Quantity::ZERO);
    let request = request(pod, signal.resource());
    let exceeds = signal != Signal::PidAvailable && used > request;
    let excess = used.checked_sub(request).unwrap_or(used);
    Rank {
        moderate: if exceeds { Moderation::Exceeds } else { Moderation::Moderate },
        priority,
        excess: Some(Reverse(excess)),
    }
}
