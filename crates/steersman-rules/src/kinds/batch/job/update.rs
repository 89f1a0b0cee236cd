//! What of a job may change once it exists.

use serde_json::{Value, json};

use crate::rules::at::{At, Errors};
use crate::rules::document::{items, remove, same, within_existing};

/// The mistakes in going from one job to another.
pub(super) fn validate(old: &Value, new: &Value, errors: &mut Errors) {
    let before = &old["spec"];
    let spec = At::new(&new["spec"], "spec");
    completions(before, &spec, errors);
    spec.at("selector").unchanged_as("*raw", &before["selector"], errors);
    template(old, &spec, errors);
    // Each with the type it is shown as.
    for (key, kind) in [
        ("completionMode", "*string"),
        ("podFailurePolicy", "*PodFailurePolicy"),
        ("backoffLimitPerIndex", "*int"),
        ("managedBy", "*string"),
        ("successPolicy", "*SuccessPolicy"),
    ] {
        spec.at(key).unchanged_as(kind, &before[key], errors);
    }
}

/// An indexed job may change its completions together with its parallelism.
fn completions(old: &Value, spec: &At<'_, '_>, errors: &mut Errors) {
    let completions = spec.at("completions");
    if spec.at("completionMode").text() != "Indexed" {
        completions.unchanged(&old["completions"], errors);
    } else if completions.value != &old["completions"]
        && completions.is_set()
        && completions.value != spec.at("parallelism").value
    {
        errors.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
    }
}

/// Where and with what the pods of a job run can change while it has none.
fn template(old: &Value, spec: &At<'_, '_>, errors: &mut Errors) {
    let template = spec.at("template");
    if same(&old["spec"]["template"], template.value) {
        return;
    }
    if !is_at_rest(old) {
        errors.push(template.invalid_as("PodTemplateSpec", "field is immutable"));
        return;
    }
    let was = frozen(&old["spec"]["template"]);
    let is = frozen(template.value);
    if !same(&was, &is) {
        errors.push(template.at("spec").invalid_as("PodSpec", "field is immutable"));
    }
}

/// Whether a job is suspended, and its pods are gone or never were.
fn is_at_rest(job: &Value) -> bool {
    let status = &job["status"];
    let suspended =
        |condition: &Value| condition["type"] == "Suspended" && condition["status"] == "True";
    job["spec"]["suspend"] == true
        && (status["startTime"].is_null() || items(&status["conditions"]).iter().any(suspended))
        && status["active"].as_i64().unwrap_or(0) == 0
}

/// The part of a template's spec that stays as it is all the same.
fn frozen(template: &Value) -> Value {
    let mut spec = template["spec"].clone();
    for key in ["nodeSelector", "tolerations", "schedulingGates"] {
        remove(&mut spec, key);
    }
    within_existing(&mut spec, "affinity", |affinity| drop(remove(affinity, "nodeAffinity")));
    if spec["affinity"] == json!({}) {
        remove(&mut spec, "affinity");
    }
    for list in ["containers", "initContainers"] {
        crate::rules::document::each(&mut spec, list, |container| {
            remove(container, "resources");
        });
    }
    spec
}
