//! What every kind that makes pods has: a template, and a selector that must match it.

use serde_json::{Value, json};

use super::document::{is_empty, items, required, text};
use super::pod::validation;
use crate::field::FieldError;
use crate::names;

/// The mistakes in `spec.selector` and `spec.template` of a kind with both.
///
/// `kind` is how complaints about an empty selector name the kind.
pub(super) fn validate(spec: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = &spec["selector"];
    if selector.is_null() {
        // A missing selector selects nothing, so the template does not match it either.
        if kind != "daemonset" {
            errors.push(FieldError::required("spec.selector", ""));
        }
    } else {
        errors.extend(validate_selector(selector, "spec.selector"));
        if selects_everything(selector) {
            let detail = format!("empty selector is invalid for {kind}");
            errors.push(FieldError::invalid("spec.selector", selector, &detail));
        }
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if selector.is_null() || !matches(selector, labels) {
        errors.push(mismatch(labels));
    }
    errors.extend(validate_template(&spec["template"], "spec.template"));
    errors.extend(always_restarts(&spec["template"], kind));
    errors
}

/// The mistakes in a template itself.
pub(super) fn validate_template(template: &Value, path: &str) -> Vec<FieldError> {
    let labels = &template["metadata"]["labels"];
    let mut errors = names::validate_labels(labels, &format!("{path}.labels"));
    errors.extend(validation::pod_spec(&template["spec"], &format!("{path}.spec")));
    errors
}

/// What a selector that does not match its template is told.
pub(super) fn mismatch(labels: &Value) -> FieldError {
    let shown = if labels.is_null() { &json!({}) } else { labels };
    let detail = "`selector` does not match template `labels`";
    FieldError::invalid("spec.template.metadata.labels", shown, detail)
}

/// Pods that are replaced rather than finished must restart, and have no deadline.
pub(super) fn always_restarts(template: &Value, kind: &str) -> Vec<FieldError> {
    let spec = &template["spec"];
    let mut errors = Vec::new();
    if spec["restartPolicy"] != "Always" {
        let field = "spec.template.spec.restartPolicy";
        errors.push(FieldError::not_supported(field, &spec["restartPolicy"], &["Always"]));
    }
    if !spec["activeDeadlineSeconds"].is_null() {
        let kind = match kind {
            "statefulset" => "StatefulSet",
            "daemonset" => "DaemonSet",
            "replicationcontroller" => "ReplicationController",
            _ => "ReplicaSet",
        };
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden("spec.template.spec.activeDeadlineSeconds", &detail));
    }
    errors
}

/// The mistakes in a label selector.
pub(super) fn validate_selector(selector: &Value, path: &str) -> Vec<FieldError> {
    let labels = &selector["matchLabels"];
    let mut errors = names::validate_labels(labels, &format!("{path}.matchLabels"));
    for (i, requirement) in items(&selector["matchExpressions"]).iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        let values = format!("{path}.values");
        match (text(&requirement["operator"]), is_empty(&requirement["values"])) {
            ("In" | "NotIn", true) => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(values, detail));
            }
            ("Exists" | "DoesNotExist", false) => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(values, detail));
            }
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            _ => {
                let detail = "not a valid selector operator";
                let field = format!("{path}.operator");
                errors.push(FieldError::invalid(field, &requirement["operator"], detail));
            }
        }
        errors.extend(required(requirement, &path, "key"));
    }
    errors
}

/// Whether a label selector matches labels.
pub(super) fn matches(selector: &Value, labels: &Value) -> bool {
    let equal = |(key, value): (&String, &Value)| labels[key] == *value;
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    wanted.into_iter().all(equal)
        && items(&selector["matchExpressions"]).iter().all(|requirement| {
            let found = labels.get(text(&requirement["key"]));
            let listed = found.is_some_and(|value| items(&requirement["values"]).contains(value));
            match text(&requirement["operator"]) {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

fn selects_everything(selector: &Value) -> bool {
    is_empty(&selector["matchLabels"]) && is_empty(&selector["matchExpressions"])
}
