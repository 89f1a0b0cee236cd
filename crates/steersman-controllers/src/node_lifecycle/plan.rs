//! What a Node's taints and labels are to be, and what becomes of its Pods: objects in, objects out.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::zones::Member;
use crate::node::{NO_EXECUTE, NO_SCHEDULE, readiness, taints};

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Condition, its status, and the taint that it means.
const CONDITION_TAINTS: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];
/// Labels and the names that they had before.
const LABELS: [(&str, &str); 2] = [
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
];
/// Whose label it is does not count for how its zone is.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";
/// Where a node is, by the names that are and those that were.
const REGION: [&str; 2] =
    ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"];
const ZONE: [&str; 2] = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];

/// What is to be done about the Pods of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    /// Nothing: the node has never said how it is.
    None,
    /// They may stay.
    Stay,
    /// They are to go, sooner or later, by this taint.
    Due(&'static str),
    /// They were to go already, by this taint.
    Tainted(&'static str),
}

/// What is to be done about the Pods of a node, as it is.
pub(super) fn eviction(node: &Node, all_lost: bool) -> Eviction {
    let (taint, opposite) = match readiness(node) {
        None => return Eviction::None,
        Some("False") => (NOT_READY, UNREACHABLE),
        Some("Unknown") => (UNREACHABLE, NOT_READY),
        Some(_) => return Eviction::Stay,
    };
    let has = |key: &str| taints(node).iter().any(|it| it.key == key && it.effect == NO_EXECUTE);
    match () {
        () if all_lost => Eviction::Stay,
        () if has(taint) || has(opposite) => Eviction::Tainted(taint),
        () => Eviction::Due(taint),
    }
}

/// The Node with the taints and labels that it is to have, if it has others. Of the taints that send
/// Pods away it is to have this one; without one, those stay that it has.
pub(super) fn corrected(node: &Node, no_execute: Option<NoExecute>, now: &Time) -> Option<Node> {
    let mut wanted = no_schedule(node);
    let managed = |taint: &Taint| taint.effect == NO_SCHEDULE && is_managed(&taint.key);
    let evicts = |taint: &Taint| {
        taint.effect == NO_EXECUTE && [NOT_READY, UNREACHABLE].contains(&taint.key.as_str())
    };
    if let Some(NoExecute(Some(key))) = no_execute {
        wanted.push((key, NO_EXECUTE));
    }
    let is_wanted = |taint: &Taint| wanted.contains(&(&taint.key, &taint.effect));
    let mut new = taints(node).to_vec();
    new.retain(|taint| {
        let ours = managed(taint) || (no_execute.is_some() && evicts(taint));
        !ours || is_wanted(taint)
    });
    for (key, effect) in &wanted {
        if !new.iter().any(|taint| taint.key == *key && taint.effect == *effect) {
            new.push(Taint {
                key: (*key).into(),
                effect: (*effect).into(),
                time_added: Some(now.clone()),
                value: None,
            });
        }
    }
    let labels = relabelled(node);
    if new == taints(node) && labels.is_none() {
        return None;
    }
    let mut node = node.clone();
    node.spec.get_or_insert_default().taints = (!new.is_empty()).then_some(new);
    if let Some(labels) = labels {
        node.metadata.labels = Some(labels);
    }
    Some(node)
}

/// Which of the taints that send Pods away a Node is to have: this one, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoExecute(pub(super) Option<&'static str>);

/// The taints that keep new Pods away, by what the Node says.
fn no_schedule(node: &Node) -> Vec<(&'static str, &'static str)> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut wanted = Vec::new();
    for condition in conditions.into_iter().flatten() {
        let meant = CONDITION_TAINTS
            .iter()
            .find(|(type_, status, _)| condition.type_ == *type_ && condition.status == *status);
        wanted.extend(meant.map(|(_, _, key)| (*key, NO_SCHEDULE)));
    }
    if node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
        wanted.push((UNSCHEDULABLE, NO_SCHEDULE));
    }
    wanted
}

fn is_managed(key: &str) -> bool {
    key == UNSCHEDULABLE || CONDITION_TAINTS.iter().any(|(_, _, taint)| *taint == key)
}

/// The labels that a Node is to have, if it has others: under their old names they say the same.
fn relabelled(node: &Node) -> Option<BTreeMap<String, String>> {
    let labels = node.metadata.labels.as_ref()?;
    let mut new = labels.clone();
    for (label, beta) in LABELS {
        if let Some(value) = labels.get(label) {
            new.insert(beta.into(), value.clone());
        }
    }
    (new != *labels).then_some(new)
}

/// How a Node counts in its zone.
pub(super) fn member(node: &Node) -> Member {
    let labels = node.metadata.labels.as_ref();
    Member {
        zone: zone(node),
        ready: readiness(node) == Some("True"),
        counts: !labels.is_some_and(|labels| labels.contains_key(EXCLUDED)),
    }
}

/// The zone of a Node, under Kubernetes' name for it.
pub(super) fn zone(node: &Node) -> String {
    let label = |names: [&str; 2]| {
        let labels = node.metadata.labels.as_ref()?;
        names.into_iter().find_map(|name| labels.get(name)).filter(|value| !value.is_empty())
    };
    match (label(REGION), label(ZONE)) {
        (None, None) => String::new(),
        (region, zone) => {
            let text = |value: Option<&String>| value.cloned().unwrap_or_default();
            format!("{}:\0:{}", text(region), text(zone))
        }
    }
}

/// The Pod, which is not ready because its node is not; nothing if it said so itself.
pub(super) fn not_ready(pod: &Pod, now: &Time) -> Option<Pod> {
    let is_ready = crate::pod::is_ready(pod);
    let mut pod = is_ready.then(|| pod.clone())?;
    let conditions = pod.status.as_mut()?.conditions.as_mut()?;
    let ready = conditions.iter_mut().find(|condition| condition.type_ == "Ready")?;
    ready.status = "False".into();
    ready.last_transition_time = Some(now.clone());
    Some(pod)
}
