//! Conditions of pods, which the server sets where it acts on one.

use serde_json::{Value, json};

/// Sets a condition. The time of the last transition stays if its status does.
pub(super) fn set_condition(object: &mut Value, mut condition: Value, now: &str) {
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = object["status"]["conditions"].as_array_mut() else { return };
    let known = conditions.iter_mut().find(|known| known["type"] == condition["type"]);
    let kept = known.as_ref().filter(|known| known["status"] == condition["status"]);
    let since = kept.and_then(|known| known["lastTransitionTime"].as_str()).unwrap_or(now);
    condition["lastTransitionTime"] = since.into();
    condition["lastProbeTime"] = Value::Null;
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}
