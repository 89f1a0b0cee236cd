//! A Pod goes only to nodes that match its node selector and its required node affinity.

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, Pod};

use super::{FilterPlugin, refuse};
use crate::snapshot::{NodeView, PodView};

pub(super) struct NodeAffinity;

impl FilterPlugin for NodeAffinity {
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>> {
        if selector_matches(pod.pod, node.node) && affinity_matches(pod.pod, node.node) {
            Ok(())
        } else {
            refuse("node(s) didn't match Pod's node affinity/selector")
        }
    }
}

fn selector_matches(pod: &Pod, node: &Node) -> bool {
    let selector = pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    selector.into_iter().flatten().all(|(key, value)| label(node, key) == Some(value))
}

/// Any one of the terms is enough.
fn affinity_matches(pod: &Pod, node: &Node) -> bool {
    let affinity =
        pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.node_affinity.as_ref());
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
    let name = |key: &str| if key == "metadata.name" { node.metadata.name.as_ref() } else { None };
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
