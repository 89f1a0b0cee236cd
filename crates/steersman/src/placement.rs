//! Which nodes a Pod may go to, by labels, names and taints alone: what the scheduler asks of a node
//! before it looks for room, and whoever places Pods itself, as the DaemonSet controller does.

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Whether a Pod's node selector and its required node affinity both match a node.
pub fn selects(spec: &PodSpec, node: &Node) -> bool {
    let selector = spec.node_selector.iter().flatten();
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    let mut selector = selector.map(|(key, value)| label(node, key) == Some(value));
    selector.all(|matches| matches) && required.is_none_or(|required| matches(required, node))
}

/// Whether a node selector matches a node: any one of its terms is enough.
pub fn matches(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| term_matches(term, node))
}

/// Whether a toleration is about a taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let same_or_any = |field: &Option<String>, of_taint: &str| {
        field.as_deref().is_none_or(|text| text.is_empty() || text == of_taint)
    };
    let same_value = match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => {
            toleration.value.as_deref().unwrap_or_default()
                == taint.value.as_deref().unwrap_or_default()
        }
        _ => false,
    };
    same_value
        && same_or_any(&toleration.effect, &taint.effect)
        && same_or_any(&toleration.key, &taint.key)
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
