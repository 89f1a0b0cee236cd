//! `pods/ephemeralcontainers`: containers are added to a running pod, never changed or removed.

use serde_json::Value;

use super::items;
use crate::field::{FieldError, FieldErrorKind};

const LIST: &str = "ephemeralContainers";

/// What makes a container part of the workload; an ephemeral one is not.
const NOT_FOR_EPHEMERAL: &[&str] = &[
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
];

/// A mirror of a static pod, which only its node can change.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// The old pod with the ephemeral containers of the new.
pub(super) fn taken(old: &Value, new: &Value) -> Value {
    let mut result = old.clone();
    let Some(spec) = result.get_mut("spec").and_then(Value::as_object_mut) else { return result };
    match new["spec"].get(LIST).filter(|list| !list.is_null()) {
        Some(list) => spec.insert(LIST.to_owned(), list.clone()),
        None => spec.remove(LIST),
    };
    result
}

/// What is wrong with the ephemeral containers of a pod, or with their change.
pub(super) fn mistakes(old: &Value, new: &Value) -> Vec<FieldError> {
    if old["metadata"]["annotations"].get(MIRROR).is_some() {
        let why = "static pods do not support ephemeral containers";
        return vec![FieldError::forbidden("", why)];
    }
    let mut errors = of_containers(&new["spec"]);
    for container in items(&old["spec"][LIST]) {
        let name = container["name"].as_str().unwrap_or("");
        let field = format!("spec.{LIST}");
        match items(&new["spec"][LIST]).iter().find(|new| new["name"] == container["name"]) {
            None => {
                let why = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden(field, &why));
            }
            Some(new) if new != container => {
                let why = format!("existing ephemeral containers {name:?} may not be changed\n");
                errors.push(FieldError::forbidden(field, &why));
            }
            Some(_) => {}
        }
    }
    errors
}

fn of_containers(spec: &Value) -> Vec<FieldError> {
    let others: Vec<&Value> = items(&spec["containers"])
        .iter()
        .chain(items(&spec["initContainers"]))
        .map(|container| &container["name"])
        .collect();
    let mut names = others.clone();
    let mut errors = Vec::new();
    for (i, container) in items(&spec[LIST]).iter().enumerate() {
        let path = format!("spec.{LIST}[{i}]");
        if names.contains(&&container["name"]) {
            errors.push(FieldError::duplicate(format!("{path}.name"), &container["name"]));
        }
        names.push(&container["name"]);
        let target = &container["targetContainerName"];
        if !matches!(target.as_str(), None | Some("")) && !others.contains(&target) {
            let text = format!("Not found: {target}");
            let field = format!("{path}.targetContainerName");
            errors.push(FieldError { kind: FieldErrorKind::NotFound, field, text });
        }
        errors.extend(of_workload(container, &path));
    }
    errors
}

/// Complains of what only containers of the workload may have.
fn of_workload(container: &Value, path: &str) -> Vec<FieldError> {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    let given = NOT_FOR_EPHEMERAL.iter().filter(|field| is_set(&container[**field]));
    let mut errors: Vec<FieldError> =
        given.map(|field| FieldError::forbidden(format!("{path}.{field}"), WHY)).collect();
    for (i, mount) in items(&container["volumeMounts"]).iter().enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if mount[field].as_str().is_some_and(|path| !path.is_empty()) {
                let field = format!("{path}.volumeMounts[{i}].{field}");
                errors.push(FieldError::forbidden(field, WHY));
            }
        }
    }
    errors
}
