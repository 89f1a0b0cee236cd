//! Certificate signing requests: who approves does not sign, and who signs does not approve.
//!
//! `approval` writes the conditions and leaves the certificate; `status` writes the certificate
//! and leaves the decision. What was decided once stays.

use serde_json::{Value, json};

use super::items;
use crate::field::FieldError;

const DECISIONS: [&str; 2] = ["Approved", "Denied"];
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];

/// The old request with the conditions of the new.
pub(super) fn taken(old: &Value, new: &Value, now: &str) -> Value {
    let mut result = old.clone();
    if !result["status"].is_object() {
        result["status"] = json!({});
    }
    result["status"]["conditions"] = items(&new["status"]["conditions"]).to_vec().into();
    stamp(old, &mut result, now);
    result
}

/// Puts the decision back into a request whose status was written, unless one was added or
/// removed, which [`mistakes`] refuses.
pub(super) fn keep_decision(old: &Value, new: &mut Value, now: &str) {
    for decision in DECISIONS {
        let kept: Vec<Value> = of_type(old, decision).into_iter().cloned().collect();
        if kept.len() != of_type(new, decision).len() {
            continue;
        }
        let conditions = conditions_mut(new);
        let slots = conditions.filter(|condition| condition["type"] == decision);
        slots.zip(kept).for_each(|(slot, kept)| *slot = kept);
    }
    stamp(old, new, now);
}

/// What is wrong with a change through one of the two paths.
pub(super) fn mistakes(old: &Value, new: &Value, subresource: &str) -> Vec<FieldError> {
    const FIELD: &str = "status.conditions";
    let mut errors = of_conditions(new);
    let decides = subresource == "approval";
    for kind in LASTING {
        let (before, after) = (of_type(old, kind), of_type(new, kind));
        if after.len() < before.len() {
            let why = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(FIELD, &why));
        } else if after.len() > before.len() && DECISIONS.contains(&kind) && !decides {
            let why = format!("updates may not add a condition of type {kind:?}");
            errors.push(FieldError::forbidden(FIELD, &why));
        }
    }
    let both = DECISIONS.iter().all(|kind| !of_type(new, kind).is_empty());
    if both && !DECISIONS.iter().all(|kind| !of_type(old, kind).is_empty()) {
        let why = "Approved and Denied conditions are mutually exclusive";
        errors.push(FieldError::invalid(FIELD, &new["status"]["conditions"], why));
    }
    let (before, after) = (&old["status"]["certificate"], &new["status"]["certificate"]);
    if before != after && !before.is_null() {
        let why = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden("status.certificate", why));
    }
    errors
}

fn of_conditions(request: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let conditions = items(&request["status"]["conditions"]);
    for (i, condition) in conditions.iter().enumerate() {
        let path = format!("status.conditions[{i}]");
        let text = |field: &str| condition[field].as_str().unwrap_or("");
        let (kind, status) = (text("type"), text("status"));
        let field = format!("{path}.status");
        if kind.is_empty() {
            errors.push(FieldError::required(format!("{path}.type"), ""));
        }
        match status {
            "" => errors.push(FieldError::required(field, "")),
            "True" => {}
            "False" | "Unknown" if LASTING.contains(&kind) => {
                errors.push(FieldError::not_supported(field, &status.into(), &["True"]));
            }
            "False" | "Unknown" => {}
            _ => {
                let known = ["False", "True", "Unknown"];
                errors.push(FieldError::not_supported(field, &status.into(), &known));
            }
        }
        if conditions[..i].iter().any(|other| other["type"] == condition["type"]) {
            errors.push(FieldError::duplicate(format!("{path}.type"), &condition["type"]));
        }
    }
    errors
}

/// Gives conditions the times that the client left out.
fn stamp(old: &Value, new: &mut Value, now: &str) {
    let before = items(&old["status"]["conditions"]);
    let conditions = conditions_mut(new);
    for condition in conditions.filter(|condition| condition.is_object()) {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = now.into();
        }
        if condition["lastTransitionTime"].is_null() {
            let same =
                |c: &&Value| c["type"] == condition["type"] && c["status"] == condition["status"];
            let since = before.iter().find(same).map(|c| c["lastTransitionTime"].clone());
            condition["lastTransitionTime"] =
                since.filter(|time| !time.is_null()).unwrap_or_else(|| now.into());
        }
    }
}

/// The conditions to write to; none where there are none.
fn conditions_mut(request: &mut Value) -> impl Iterator<Item = &mut Value> {
    let list = request.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

fn of_type<'a>(request: &'a Value, kind: &str) -> Vec<&'a Value> {
    items(&request["status"]["conditions"]).iter().filter(|c| c["type"] == kind).collect()
}
