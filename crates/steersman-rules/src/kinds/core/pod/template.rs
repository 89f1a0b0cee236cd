//! What every kind that makes pods has: a template, and a selector that must match it.

use serde_json::Value;

use super::{annotations, spec, warnings};
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::label_selector::{label_selector, matches};

/// How a kind that replaces its pods is named in complaints.
#[derive(Clone, Copy)]
pub(in crate::kinds) struct Kind {
    /// Where an empty selector is invalid.
    pub(in crate::kinds) of_selector: &'static str,
    /// Where a deadline is not supported.
    pub(in crate::kinds) of_deadline: &'static str,
}

/// The mistakes in `spec.selector` and `spec.template` of a kind with both. What a selector means
/// that is not sound nobody can tell, so the template is not held against it, nor looked at.
pub(in crate::kinds) fn validate(spec: &At<'_, '_>, kind: Kind, errors: &mut Errors) {
    if selects(spec, kind, errors) {
        validate_template(&spec.at("template"), errors);
        always_restarts(&spec.at("template"), kind, errors);
    } else {
        errors.push(spec.at("selector").invalid_as("*raw", "invalid label selector"));
    }
}

/// The mistakes in `spec.selector`, and of a template that does not match it; whether the selector
/// is sound.
pub(in crate::kinds) fn selects(spec: &At<'_, '_>, kind: Kind, errors: &mut Errors) -> bool {
    let selector = spec.at("selector");
    if selector.is_absent() {
        errors.push(selector.required(""));
        // A missing selector selects nothing, so the template does not match it either.
        matching(spec, false, errors);
        return true;
    }
    let before = errors.len();
    label_selector(&selector, errors);
    let sound = errors.len() == before;
    not_everything(&selector, kind, errors);
    if sound {
        matching(spec, matches(selector.value, labels(spec.value)), errors);
    }
    sound
}

/// Complains about a selector that is there and selects everything.
pub(in crate::kinds) fn not_everything(selector: &At<'_, '_>, kind: Kind, errors: &mut Errors) {
    let empty = |field: &str| selector.at(field).is_empty();
    if selector.is_set() && empty("matchLabels") && empty("matchExpressions") {
        let why = format!("empty selector is invalid for {}", kind.of_selector);
        errors.push(selector.invalid(&why));
    }
}

/// The labels of the template of a spec.
pub(in crate::kinds) fn labels(spec: &Value) -> &Value {
    &spec["template"]["metadata"]["labels"]
}

/// Complains if a selector does not match the labels of its template.
pub(in crate::kinds) fn matching(spec: &At<'_, '_>, matches: bool, errors: &mut Errors) {
    if !matches {
        let labels = spec.at("template.metadata.labels");
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
}

/// The mistakes in a template itself.
pub(in crate::kinds) fn validate_template(template: &At<'_, '_>, errors: &mut Errors) {
    validate_metadata(template, errors);
    let pod = template.at("spec");
    spec::validate(&pod, &Value::Null, errors);
    annotations::match_fields(&template.value["metadata"]["annotations"], &pod, errors);
    let ephemeral = pod.at("ephemeralContainers");
    if !ephemeral.list().is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// The mistakes in the labels and annotations of a template.
pub(in crate::kinds) fn validate_metadata(template: &At<'_, '_>, errors: &mut Errors) {
    let metadata = &template.value["metadata"];
    template.named("labels").with(&metadata["labels"]).labels(errors);
    let annotations = template.named("annotations").with(&metadata["annotations"]);
    if annotations.is_set() {
        errors.extend(names::validate_annotations(annotations.value, &annotations.path()));
    }
    annotations::validate(&annotations, &template.at("spec"), errors);
}

/// Pods that are replaced rather than finished must restart, and have no deadline.
pub(in crate::kinds) fn always_restarts(template: &At<'_, '_>, kind: Kind, errors: &mut Errors) {
    let policy = template.at("spec.restartPolicy");
    if policy.text() != "Always" {
        errors.push(policy.not_supported(&["Always"]));
    }
    let deadline = template.at("spec.activeDeadlineSeconds");
    if deadline.is_set() {
        let why = format!("activeDeadlineSeconds in {} is not Supported", kind.of_deadline);
        errors.push(deadline.forbidden(&why));
    }
}

/// The warnings about a template, whenever what the object asks for changes, be it another part.
pub(in crate::kinds) fn warnings_of(
    object: &Value,
    path: &str,
    old: Option<&Value>,
) -> Vec<String> {
    if is_new_generation(object, old) {
        warnings::of(&At::root(object).at(path))
    } else {
        Vec::new()
    }
}

/// Whether an object is new, or asks for something else than it did.
pub(in crate::kinds) fn is_new_generation(object: &Value, old: Option<&Value>) -> bool {
    old.is_none_or(|old| old["metadata"]["generation"] != object["metadata"]["generation"])
}

/// The warnings about a name that the pods of a template take over, and about the template.
pub(in crate::kinds) fn warnings_of_replicas(object: &Value, old: Option<&Value>) -> Vec<String> {
    let of_name = match old {
        None => warnings::of_name(object, "Pod names and hostnames"),
        Some(_) => None,
    };
    of_name.into_iter().chain(warnings_of(object, "spec.template", old)).collect()
}
