//! What the failure of a pod means for its job.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::{FieldError, FieldErrorKind};
use crate::names;
use crate::rules::at::{At, Errors};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const PATTERNS_MAX: usize = 20;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// The mistakes in `podFailurePolicy`.
pub(super) fn validate(spec: &At<'_, '_>, errors: &mut Errors) {
    let rules = spec.at("podFailurePolicy.rules");
    if rules.len() > RULES_MAX {
        errors.push(rules.too_many(RULES_MAX));
    }
    for rule in rules.items() {
        let action = rule.at("action");
        if action.text() == "FailIndex" {
            if spec.at("backoffLimitPerIndex").is_absent() {
                errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
            }
        } else {
            one_of(&action, ACTIONS, errors);
        }
        let codes = rule.at("onExitCodes");
        let conditions = rule.at("onPodConditions");
        if codes.is_set() {
            exit_codes(&codes, spec, errors);
        }
        pod_conditions(&conditions, errors);
        let why = match (codes.is_set(), !conditions.list().is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(without_value(rule.path(), why));
    }
}

/// `Invalid value: <detail>`, where the value would not help.
pub(super) fn without_value(field: String, why: &str) -> FieldError {
    FieldError { kind: FieldErrorKind::Invalid, field, text: format!("Invalid value: {why}") }
}

fn one_of(at: &At<'_, '_>, allowed: &[&str], errors: &mut Errors) {
    if at.text().is_empty() {
        let quoted: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        errors.push(at.required(&format!("valid values: [{}]", quoted.join(" "))));
    } else {
        at.one_of(allowed, errors);
    }
}

fn pod_conditions(list: &At<'_, '_>, errors: &mut Errors) {
    if list.len() > PATTERNS_MAX {
        errors.push(list.too_many(PATTERNS_MAX));
    }
    for pattern in list.items() {
        pattern.at("type").follows(names::qualified_name, errors);
        one_of(&pattern.at("status"), STATUSES, errors);
    }
}

fn exit_codes(codes: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    let operator = codes.at("operator");
    let name = codes.at("containerName");
    one_of(&operator, &["In", "NotIn"], errors);
    let pod = &spec.value["template"]["spec"];
    let lists = ["containers", "initContainers"];
    let mut containers = lists.iter().filter_map(|list| pod[*list].as_array()).flatten();
    if name.is_set() && !containers.any(|container| container["name"] == *name.value) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(name.invalid(why));
    }
    let values = codes.at("values");
    match values.len() {
        0 => errors.push(values.invalid_value(values.list(), "at least one value is required")),
        count if count > EXIT_CODES_MAX => errors.push(values.too_many(EXIT_CODES_MAX)),
        _ => {}
    }
    let mut seen = HashSet::new();
    for value in values.items() {
        if operator.text() == "In" && value.number() == Some(0) {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(value.number()) {
            errors.push(value.duplicate());
        }
    }
    if !values.list().is_sorted_by_key(Value::as_i64) {
        errors.push(values.invalid("must be ordered"));
    }
}
