//! Which nodes should run a Pod of a DaemonSet.
//!
//! As the scheduler decides, but by labels, name and taints alone: whether there is room is not
//! asked, since a Pod that finds none waits for it.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Node;
use steersman::placement::{selects, tolerates};

use super::template;

/// What a node means for a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// Whether it should have a Pod.
    pub(super) runs: bool,
    /// Whether a Pod that it has may stay: taints that only keep new ones away let it.
    pub(super) keeps: bool,
}

/// What this node means for the Pods of this set.
pub(super) fn placement(set: &DaemonSet, node: &Node) -> Placement {
    let nowhere = Placement { runs: false, keeps: false };
    let Some(spec) = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()) else {
        return nowhere;
    };
    let named = spec.node_name.as_ref().filter(|name| !name.is_empty());
    let elsewhere = named.is_some_and(|name| Some(name) != node.metadata.name.as_ref());
    if elsewhere || !selects(spec, node) {
        return nowhere;
    }
    let tolerations = template::tolerations(spec);
    let untolerated = |effects: &[&str]| {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        taints.into_iter().flatten().any(|taint| {
            effects.contains(&taint.effect.as_str())
                && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
        })
    };
    Placement {
        runs: !untolerated(&["NoSchedule", "NoExecute"]),
        keeps: !untolerated(&["NoExecute"]),
    }
}

/// Whether a node has become another one for DaemonSets.
pub(super) fn differ(old: &Node, new: &Node) -> bool {
    let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
    old.metadata.labels != new.metadata.labels || taints(old) != taints(new)
}
