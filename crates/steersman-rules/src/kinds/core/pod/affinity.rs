//! Affinity: to nodes by their labels, to and against other pods.

use std::collections::{HashMap, HashSet};

use crate::field::FieldError;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::label_selector::{Values, label_selector, node_selector, node_term};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The mistakes in a pod's affinity.
pub(super) fn validate(affinity: &At<'_, '_>, errors: &mut Errors) {
    if affinity.is_absent() {
        return;
    }
    let nodes = affinity.at("nodeAffinity");
    if nodes.at(REQUIRED).is_set() {
        node_selector(&nodes.at(REQUIRED), errors);
    }
    for term in nodes.each(PREFERRED) {
        weight(&term, errors);
        node_term(&term.at("preference"), Values::Any, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.at(kind);
        for term in pods.each(REQUIRED) {
            pod_term(&term, errors);
        }
        for term in pods.each(PREFERRED) {
            weight(&term, errors);
            pod_term(&term.at("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &At<'_, '_>, errors: &mut Errors) {
    let weight = term.at("weight");
    let number = weight.number_or_zero();
    if !(1..=100).contains(&number) {
        errors.push(weight.invalid_value(number, "must be in the range 1-100"));
    }
}

fn pod_term(term: &At<'_, '_>, errors: &mut Errors) {
    label_selector(&term.at("labelSelector"), errors);
    label_selector(&term.at("namespaceSelector"), errors);
    let shown = term.named("namespace");
    for name in term.each("namespaces") {
        shown.with(name.value).follows(names::dns1123_label, errors);
    }
    label_keys(term, errors);
    let key = term.at("topologyKey");
    if key.text().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    key.follows(names::qualified_name, errors);
}

/// Complains about keys whose values a selector takes from the pod itself.
pub(super) fn label_keys(term: &At<'_, '_>, errors: &mut Errors) {
    let selector = term.at("labelSelector");
    let same = term.at("matchLabelKeys");
    let other = term.at("mismatchLabelKeys");
    for keys in [same, other].iter().filter(|keys| !keys.list().is_empty()) {
        if selector.is_absent() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in keys.items() {
            key.follows(names::qualified_name, errors);
        }
    }
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for (i, key) in same.list().iter().enumerate() {
        positions.insert(key.as_str().unwrap_or_default(), i);
    }
    // The server itself adds one expression for each key, so only a second one is a mistake.
    let labels = selector.value["matchLabels"].as_object();
    let mut seen: HashSet<&str> =
        labels.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    for expression in selector.each("matchExpressions") {
        let key = expression.at("key").text();
        if let Some(i) = positions.get(key).filter(|_| seen.contains(key)) {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(format!("{}[{i}]", term.path()), &key.into(), why));
        }
        seen.insert(key);
    }
    let others: HashSet<&str> = other.items().map(|key| key.text()).collect();
    for key in same.items().filter(|key| others.contains(key.text())) {
        errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
}
