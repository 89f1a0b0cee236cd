//! Autoscalers of `autoscaling/v1`, which know one metric: how much of its CPU a pod uses.
//!
//! What else an autoscaler has, `v1` shows in annotations, where the way back to `v2` finds it:
//! other metrics in a form of their own ([`FORMS`]), the behaviour by the names that Go gives
//! its fields, conditions as they are, all of it in the order of Go's fields. These are facts of
//! Kubernetes that clients rely on.

use serde_json::{Map, Value, json};

use super::{fields, take};
use crate::rules::document::keep_annotation;
use crate::rules::internal;
use crate::schema::Schema;

const V1: &str = "autoscaling/v1";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// How much a metric may be off, which other versions said here.
const TOLERANCES: [&str; 2] = [
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
const ANNOTATIONS: [&str; 6] =
    [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR, TOLERANCES[0], TOLERANCES[1]];

/// What an autoscaler aims at that says nothing.
const DEFAULT_UTILIZATION: i64 = 80;

/// How a metric is written: its field, then pairs of a path in `v2` and a field in the annotation.
type Form = (&'static str, &'static [(&'static str, &'static str)]);

const FORMS: &[Form] = &[
    (
        "resource",
        &[
            ("name", "name"),
            ("target.averageUtilization", "targetAverageUtilization"),
            ("target.averageValue", "targetAverageValue"),
            ("current.averageUtilization", "currentAverageUtilization"),
            ("current.averageValue", "currentAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("container", "container"),
            ("target.averageUtilization", "targetAverageUtilization"),
            ("target.averageValue", "targetAverageValue"),
            ("current.averageUtilization", "currentAverageUtilization"),
            ("current.averageValue", "currentAverageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metric.name", "metricName"),
            ("metric.selector", "selector"),
            ("target.averageValue", "targetAverageValue"),
            ("current.averageValue", "currentAverageValue"),
        ],
    ),
    (
        "object",
        &[
            ("describedObject", "target"),
            ("metric.name", "metricName"),
            ("metric.selector", "selector"),
            ("target.value", "targetValue"),
            ("target.averageValue", "averageValue"),
            ("current.value", "currentValue"),
            ("current.averageValue", "averageValue"),
        ],
    ),
    (
        "external",
        &[
            ("metric.name", "metricName"),
            ("metric.selector", "metricSelector"),
            ("target.value", "targetValue"),
            ("target.averageValue", "targetAverageValue"),
            ("current.value", "currentValue"),
            ("current.averageValue", "currentAverageValue"),
        ],
    ),
];

/// What a metric tells: what to aim at, or what is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    Target,
    Current,
}

impl Tells {
    /// The part of a metric in `v2` that belongs to the other.
    fn not(self) -> &'static str {
        if self == Self::Target { "current." } else { "target." }
    }
}

/// Takes what only the way between the versions writes out of a document of `v2`; writes it anew in
/// one of `v1`.
pub(crate) fn tidy(object: &mut Value) {
    if !is_annotated(object) {
        return;
    }
    if object["apiVersion"] == V1 {
        to_v2(object);
        to_v1(object);
    } else {
        drop_annotations(object);
    }
}

/// Puts back what annotations of `v1` say of the spec: that of `old` stays.
pub(crate) fn keep_spec(old: &Value, new: &mut Value) {
    keep(&[METRICS, BEHAVIOR], old, new);
}

/// Puts back what annotations of `v1` say of the status: that of `old` stays.
pub(crate) fn keep_status(old: &Value, new: &mut Value) {
    keep(&[CURRENT_METRICS, CONDITIONS], old, new);
}

fn keep(keys: &[&str], old: &Value, new: &mut Value) {
    if new["apiVersion"] == V1 {
        keys.iter().for_each(|key| keep_annotation(old, new, key));
    }
}

/// From `v2` to `v1`.
pub(super) fn to_v1(object: &mut Value) {
    drop_annotations(object);
    let metrics = list(take(object, "spec", "metrics"));
    if let Some(cpu) = metrics.iter().find_map(|metric| cpu(metric, "target")) {
        object["spec"]["targetCPUUtilizationPercentage"] = cpu.clone();
    }
    let others = metrics.iter().filter(|metric| cpu(metric, "target").is_none());
    let others: Value = others.map(|metric| shown(metric, Tells::Target)).collect();
    annotate(object, METRICS, "[]v1.MetricSpec", &others);

    let metrics = list(take(object, "status", "currentMetrics"));
    if let Some(cpu) = metrics.iter().rev().find_map(|metric| cpu(metric, "current")) {
        object["status"]["currentCPUUtilizationPercentage"] = cpu.clone();
    }
    let all: Value = metrics.iter().map(|metric| shown(metric, Tells::Current)).collect();
    annotate(object, CURRENT_METRICS, "[]v1.MetricStatus", &all);

    let conditions = take(object, "status", "conditions").unwrap_or_default();
    annotate(object, CONDITIONS, "[]v1.HorizontalPodAutoscalerCondition", &conditions);
    let behavior = take(object, "spec", "behavior").unwrap_or_default();
    annotate(object, BEHAVIOR, "HorizontalPodAutoscalerBehavior", &behavior);
}

/// From `v1` to `v2`. Annotations that do not say what they should count for nothing.
pub(super) fn to_v2(object: &mut Value) {
    if is_annotated(object) {
        let mut full = object.clone();
        restore(&mut full);
        let schema = Schema::builtin("autoscaling", "v2", "HorizontalPodAutoscaler");
        if schema.is_some_and(|schema| schema.type_errors(&full).is_empty()) {
            *object = full;
            return;
        }
        drop_annotations(object);
    }
    restore(object);
}

fn restore(object: &mut Value) {
    let mut metrics = read(object, METRICS, Tells::Target);
    if let Some(target) = take(object, "spec", "targetCPUUtilizationPercentage") {
        metrics.push(utilization(&target));
    }
    if metrics.is_empty() {
        metrics.push(utilization(&DEFAULT_UTILIZATION.into()));
    }
    put(object, "spec", "metrics", metrics.into());
    let behavior = in_json(&annotation(object, BEHAVIOR));
    put(object, "spec", "behavior", behavior);

    let mut metrics = read(object, CURRENT_METRICS, Tells::Current);
    let current = take(object, "status", "currentCPUUtilizationPercentage");
    if let Some(current) = current.filter(|_| metrics.is_empty()) {
        let current = json!({"averageUtilization": current});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "current": current}}));
    }
    put(object, "status", "currentMetrics", metrics.into());
    let conditions = annotation(object, CONDITIONS);
    put(object, "status", "conditions", conditions);
    drop_annotations(object);
}

fn utilization(target: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": target});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// The utilisation, if this is the metric that `v1` knows.
fn cpu<'a>(metric: &'a Value, part: &str) -> Option<&'a Value> {
    let resource = &metric["resource"];
    let known = metric["type"] == "Resource" && resource["name"] == "cpu";
    Some(&resource[part]["averageUtilization"]).filter(|value| known && !value.is_null())
}

/// A metric of `v2` as the annotation has it.
fn shown(metric: &Value, tells: Tells) -> Value {
    let mut shown = json!({"type": metric["type"]});
    for (source, pairs) in FORMS.iter().filter(|(source, _)| metric[source].is_object()) {
        let mut fields = Map::new();
        for (path, field) in pairs.iter().filter(|(path, _)| !path.starts_with(tells.not())) {
            let value = path.split('.').fold(&metric[*source], |value, key| &value[key]);
            if !value.is_null() {
                fields.insert((*field).to_owned(), value.clone());
            }
        }
        shown[*source] = fields.into();
    }
    shown
}

/// A metric of an annotation in `v2`.
fn restored(metric: &Value, tells: Tells) -> Value {
    let mut restored = json!({"type": metric["type"]});
    for (source, pairs) in FORMS.iter().filter(|(source, _)| metric[source].is_object()) {
        let mut fields = json!({});
        for (path, field) in pairs.iter().filter(|(path, _)| !path.starts_with(tells.not())) {
            let value = &metric[*source][*field];
            if !value.is_null() {
                set_at(&mut fields, path, value.clone());
            }
        }
        if tells == Tells::Target {
            name_target(&mut fields["target"], *source == "object");
        }
        restored[*source] = fields;
    }
    restored
}

/// Says what kind of target it is. An object's value is always written, zero where only the
/// average counts.
fn name_target(target: &mut Value, of_object: bool) {
    let has = |key: &str| !target[key].is_null();
    let kind = if has("averageUtilization") {
        "Utilization"
    } else if has("value") && !(of_object && has("averageValue")) {
        "Value"
    } else {
        "AverageValue"
    };
    if of_object && has("averageValue") && target["value"] == "0" {
        target.as_object_mut().map(|fields| fields.remove("value"));
    }
    target["type"] = kind.into();
}

fn set_at(object: &mut Value, path: &str, value: Value) {
    match path.split_once('.') {
        Some((part, field)) => object[part][field] = value,
        None => object[path] = value,
    }
}

/// A copy whose keys are those of JSON instead of Go's, without what is null.
fn in_json(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, value)| !key.is_empty() && !value.is_null());
            let changed = kept.map(|(key, value)| {
                let first = key.chars().next().map_or(0, char::len_utf8);
                let key = key[..first].to_ascii_lowercase() + &key[first..];
                (key, in_json(value))
            });
            changed.collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(in_json).collect(),
        other => other.clone(),
    }
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The metrics in an annotation; none where it cannot be read.
fn read(object: &Value, key: &str, tells: Tells) -> Vec<Value> {
    let metrics = list(Some(annotation(object, key)));
    metrics.iter().map(|metric| restored(metric, tells)).collect()
}

fn annotation(object: &Value, key: &str) -> Value {
    let text = object["metadata"]["annotations"][key].as_str();
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Writes an annotation as Go writes a value of this [internal] type, if there is anything to write.
fn annotate(object: &mut Value, key: &str, kind: &str, value: &Value) {
    if is_empty(value) {
        return;
    }
    let metadata = fields(object, "metadata");
    let annotations = metadata.map(|metadata| metadata.entry("annotations"));
    let annotations = annotations.map(|entry| entry.or_insert_with(|| json!({})));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(key.to_owned(), internal::shown(kind, value).into());
    }
}

/// Sets a field, if there is anything to set.
fn put(object: &mut Value, part: &str, field: &str, value: Value) {
    if !is_empty(&value)
        && let Some(part) = fields(object, part)
    {
        part.insert(field.to_owned(), value);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        other => other.is_null(),
    }
}

/// Whether there is anything that only the way between the versions writes.
fn is_annotated(object: &Value) -> bool {
    ANNOTATIONS.iter().any(|key| !object["metadata"]["annotations"][key].is_null())
}

/// Removes what only the way between the versions writes.
fn drop_annotations(object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations");
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else { return };
    let before = annotations.len();
    annotations.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
    if annotations.is_empty() && before > 0 {
        take(object, "metadata", "annotations");
    }
}
