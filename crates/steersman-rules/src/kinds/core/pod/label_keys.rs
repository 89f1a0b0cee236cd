//! Selectors that take the values of some labels from the pod itself.
//!
//! `matchLabelKeys` of affinity and spreading names labels; a new pod's own values of them
//! become part of the selector, so that, say, only pods of the same rollout count.

use serde_json::{Value, json};

use crate::rules::document::{fill, items, text};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Adds the values of a new pod's labels to its selectors.
pub(super) fn merge(pod: &mut Value) {
    let spec = &pod["spec"];
    if spec["affinity"].is_null() && items(&spec["topologySpreadConstraints"]).is_empty() {
        return;
    }
    let labels = pod["metadata"]["labels"].clone();
    let Some(spec) = pod.get_mut("spec") else { return };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get_mut("affinity").and_then(|a| a.get_mut(kind)) else {
            continue;
        };
        for term in list(affinity, REQUIRED) {
            merge_term(term, &labels);
        }
        for term in list(affinity, PREFERRED) {
            if let Some(term) = term.get_mut("podAffinityTerm") {
                merge_term(term, &labels);
            }
        }
    }
    for constraint in list(spec, "topologySpreadConstraints") {
        merge_term(constraint, &labels);
    }
}

fn list<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn merge_term(term: &mut Value, labels: &Value) {
    let mut added = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in items(&term[keys]).iter().map(text) {
            if let Some(value) = labels.get(key) {
                added.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if added.is_empty() || !term["labelSelector"].is_object() {
        return;
    }
    let selector = &mut term["labelSelector"];
    fill(selector, "matchExpressions", json!([]));
    if let Some(expressions) = selector["matchExpressions"].as_array_mut() {
        expressions.append(&mut added);
    }
}
