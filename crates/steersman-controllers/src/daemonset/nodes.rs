//! Which nodes should run a Pod of a DaemonSet.
//!
//! As the scheduler decides, but by labels, name and taints alone: whether there is room is not
//! asked, since a Pod that finds none waits for it.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

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
    if elsewhere || !selector_matches(spec, node) || !affinity_matches(spec, node) {
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

fn selector_matches(spec: &PodSpec, node: &Node) -> bool {
    spec.node_selector.iter().flatten().all(|(key, value)| label(node, key) == Some(value))
}

/// Any one of the terms is enough.
fn affinity_matches(spec: &PodSpec, node: &Node) -> bool {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_none_or(|selector| {
        selector.node_selector_terms.iter().any(|term| term_matches(term, node))
    })
}

/// All of a term's requirements must hold; a term without any matches nothing.
fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let name = |key: &str| node.metadata.name.as_ref().filter(|_| key == "metadata.name");
    (!expressions.is_empty() || !fields.is_empty())
        && expressions.iter().all(|requirement| holds(requirement, label(node, &requirement.key)))
        && fields.iter().all(|requirement| holds(requirement, name(&requirement.key)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(value, values, |found, wanted| found > wanted),
        "Lt" => compare(value, values, |found, wanted| found < wanted),
        _ => false,
    }
}

/// Compares as numbers; what is not a number does not match.
fn compare(value: Option<&String>, values: &[String], ordered: fn(i64, i64) -> bool) -> bool {
    let number = |text: &String| text.parse::<i64>().ok();
    let (Some(found), [wanted]) = (value.and_then(number), values) else {
        return false;
    };
    number(wanted).is_some_and(|wanted| ordered(found, wanted))
}

fn label<'a>(node: &'a Node, key: &str) -> Option<&'a String> {
    node.metadata.labels.as_ref()?.get(key)
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let given = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    let same_effect = given(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let same_key = given(&toleration.key).is_none_or(|key| key == taint.key);
    let same_value = match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => {
            toleration.value.as_deref().unwrap_or_default()
                == taint.value.as_deref().unwrap_or_default()
        }
        _ => false,
    };
    same_effect && same_key && same_value
}
