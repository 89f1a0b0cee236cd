//! Affinity: to nodes by their labels, to and against other pods.

use crate::field::FieldError;
use crate::names;
use crate::strategy::at::At;
use crate::strategy::template::validate_selector_at;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The mistakes in a pod's affinity.
pub(super) fn validate(affinity: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    if !affinity.is_set() {
        return;
    }
    let nodes = affinity.at("nodeAffinity");
    if nodes.at(REQUIRED).is_set() {
        node_selector(&nodes.at(REQUIRED), errors);
    }
    for term in nodes.at(PREFERRED).items() {
        weight(&term, errors);
        node_term(&term.at("preference"), Values::Any, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.at(kind);
        for term in pods.at(REQUIRED).items() {
            pod_term(&term, errors);
        }
        for term in pods.at(PREFERRED).items() {
            weight(&term, errors);
            pod_term(&term.at("podAffinityTerm"), errors);
        }
    }
}

/// Whether values must be possible values of labels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Labels,
    Any,
}

fn weight(term: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    let weight = term.at("weight");
    let number = weight.number().unwrap_or(0);
    if !(1..=100).contains(&number) {
        errors.push(weight.invalid_value(number, "must be in the range 1-100"));
    }
}

/// The mistakes in a selector of nodes.
pub(in crate::strategy) fn node_selector(selector: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    let terms = selector.at("nodeSelectorTerms");
    if terms.list().is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        node_term(&term, Values::Labels, errors);
    }
}

fn node_term(term: &At<'_, '_>, values: Values, errors: &mut Vec<FieldError>) {
    for requirement in term.at("matchExpressions").items() {
        node_requirement(&requirement, values, errors);
    }
    for requirement in term.at("matchFields").items() {
        node_field(&requirement, errors);
    }
}

fn node_requirement(requirement: &At<'_, '_>, kind: Values, errors: &mut Vec<FieldError>) {
    let (operator, values) = (requirement.at("operator"), requirement.at("values"));
    match (operator.text(), values.list().len()) {
        ("In" | "NotIn", 0) => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(values.forbidden(why));
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(values.required(why));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    requirement.at("key").follows(names::qualified_name, errors);
    if kind == Values::Labels {
        for value in values.items() {
            value.follows(names::label_value, errors);
        }
    }
}

fn node_field(requirement: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    let (operator, values) = (requirement.at("operator"), requirement.at("values"));
    if !["In", "NotIn"].contains(&operator.text()) {
        errors.push(operator.invalid("not a valid selector operator"));
    } else if values.list().len() != 1 {
        let why =
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(values.required(why));
    }
    let key = requirement.at("key");
    if key.text() == "metadata.name" {
        for value in values.items() {
            value.follows(names::dns1123_subdomain, errors);
        }
    } else {
        errors.push(key.invalid("not a valid field selector key"));
    }
}

fn pod_term(term: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    validate_selector_at(&term.at("labelSelector"), errors);
    validate_selector_at(&term.at("namespaceSelector"), errors);
    let shown = term.named("namespace");
    for name in term.at("namespaces").items() {
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
pub(super) fn label_keys(term: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    let selector = term.at("labelSelector");
    let (same, other) = (term.at("matchLabelKeys"), term.at("mismatchLabelKeys"));
    for keys in [same, other].iter().filter(|keys| !keys.list().is_empty()) {
        if !selector.is_set() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in keys.items() {
            key.follows(names::qualified_name, errors);
        }
    }
    let position = |key: &str| same.list().iter().position(|own| own == key);
    // The server itself adds one expression for each key, so only a second one is a mistake.
    let labels = selector.value["matchLabels"].as_object();
    let mut seen: Vec<&str> = labels.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    for expression in selector.at("matchExpressions").items() {
        let key = expression.at("key").text();
        if let Some(i) = position(key).filter(|_| seen.contains(&key)) {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(format!("{}[{i}]", term.path()), &key.into(), why));
        }
        seen.push(key);
    }
    for key in same.items().filter(|key| other.list().contains(key.value)) {
        errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
}
