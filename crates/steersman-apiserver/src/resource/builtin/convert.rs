//! Two versions of one stored kind: how a document of one reads in the other.
//!
//! Only two built-in kinds are stored once and served twice: Event (core and `events.k8s.io`)
//! and `HorizontalPodAutoscaler` (`autoscaling/v1` and `v2`).

use serde_json::{Map, Value, json};

/// Fields of an Event: the core name, then the name in `events.k8s.io`.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Rewrites a document in the given `apiVersion`; a document already in it stays untouched.
pub fn to_api_version(object: &mut Value, api_version: &str) {
    if object["apiVersion"] == api_version {
        return;
    }
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let Some(fields) = object.as_object_mut() else { return };
    match (kind.as_str(), api_version) {
        ("Event", "v1") => rename(fields, EVENT_FIELDS.iter().map(|&(core, new)| (new, core))),
        ("Event", "events.k8s.io/v1") => rename(fields, EVENT_FIELDS.iter().copied()),
        ("HorizontalPodAutoscaler", "autoscaling/v2") => hpa_to_v2(fields),
        ("HorizontalPodAutoscaler", "autoscaling/v1") => hpa_to_v1(fields),
        _ => {}
    }
    fields.insert("apiVersion".to_owned(), api_version.into());
}

fn rename<'a>(fields: &mut Map<String, Value>, names: impl Iterator<Item = (&'a str, &'a str)>) {
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

/// `v1` knows one metric, the CPU utilisation, by two fields of its own.
fn hpa_to_v2(fields: &mut Map<String, Value>) {
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(target) = spec.remove("targetCPUUtilizationPercentage")
    {
        let target = json!({"type": "Utilization", "averageUtilization": target});
        push(spec, "metrics", cpu("target", &target));
    }
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut)
        && let Some(current) = status.remove("currentCPUUtilizationPercentage")
    {
        let current = json!({"averageUtilization": current});
        push(status, "currentMetrics", cpu("current", &current));
    }
}

fn hpa_to_v1(fields: &mut Map<String, Value>) {
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(value) = take_cpu(spec, "metrics", "target") {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), value);
        }
        spec.remove("behavior");
    }
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        if let Some(value) = take_cpu(status, "currentMetrics", "current") {
            status.insert("currentCPUUtilizationPercentage".to_owned(), value);
        }
        status.remove("conditions");
    }
}

fn cpu(part: &str, value: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", part: value}})
}

fn push(fields: &mut Map<String, Value>, list: &str, item: Value) {
    let list = fields.entry(list).or_insert_with(|| json!([]));
    if let Some(items) = list.as_array_mut() {
        items.insert(0, item);
    }
}

/// Removes the list of metrics, which `v1` does not have, and gives its CPU utilisation.
fn take_cpu(fields: &mut Map<String, Value>, list: &str, part: &str) -> Option<Value> {
    let metrics = fields.remove(list)?;
    let metrics = metrics.as_array()?;
    let cpu = metrics.iter().find(|m| m["resource"]["name"] == "cpu")?;
    cpu["resource"][part].get("averageUtilization").cloned()
}
