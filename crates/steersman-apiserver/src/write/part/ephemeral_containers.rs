//! `pods/ephemeralcontainers`: containers are added to a running pod, never changed or removed.

use serde_json::Value;
use steersman_rules::field::{FieldError, NOWHERE};
use steersman_rules::rules::internal;

use crate::document::items;

const LIST: &str = "ephemeralContainers";

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
        return vec![FieldError::forbidden(NOWHERE, why)];
    }
    let mut errors = Vec::new();
    for container in items(&old["spec"][LIST]) {
        let name = container["name"].as_str().unwrap_or("");
        let field = format!("spec.{LIST}");
        match items(&new["spec"][LIST]).iter().find(|new| new["name"] == container["name"]) {
            None => {
                let why = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden(field, &why));
            }
            Some(new) if new != container => {
                let changes = internal::diff("EphemeralContainer", container, new);
                let why =
                    format!("existing ephemeral containers {name:?} may not be changed\n{changes}");
                errors.push(FieldError::forbidden(field, &why));
            }
            Some(_) => {}
        }
    }
    errors
}
