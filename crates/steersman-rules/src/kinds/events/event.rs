//! Events of `events.k8s.io`: what they must say besides what those of the core group must, and that
//! only their series goes on.

use serde_json::Value;

use crate::field::FieldError;
use crate::kinds::core::event::{self, Names};
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, text};

/// What is said of `Event`.
pub(super) const KIND: Kind = Kind {
    plural: "events",
    name: "Event",
    short_names: &["ev"],
    traits: &[Trait::CreateOnUpdate],
    selectable_fields: &[
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ],
    rules: &RULES,
    columns: event::columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const NAMES: Names =
    Names { regarding: "regarding", note: "note", controller: "reportingController" };

/// Fields of old that the newer group does not take, and how complaints call them.
const UNSET: &[(&str, &str)] = &[
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
];

/// Fields that stay what they were, how complaints call them, and the type as which they show them.
const FIXED: &[(&str, &str, &str)] = &[
    ("regarding", "involvedObject", "ObjectReference"),
    ("reason", "reason", "string"),
    ("note", "message", "string"),
    ("deprecatedSource", "source", "EventSource"),
    ("deprecatedFirstTimestamp", "firstTimestamp", "raw"),
    ("deprecatedLastTimestamp", "lastTimestamp", "raw"),
    ("deprecatedCount", "count", "int"),
    ("reason", "reason", "string"),
    ("type", "type", "string"),
    ("eventTime", "eventTime", "raw"),
    ("action", "action", "string"),
    ("related", "related", "*ObjectReference"),
    ("reportingController", "reportingController", "string"),
    ("reportingInstance", "reportingInstance", "string"),
];

const RULES: Rules = Rules { check, change, ttl: event::TTL, ..Rules::NONE };

fn check(event: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    event::check(event, &NAMES, errors);
    if old.is_null() || event.value["series"] != old["series"] {
        series(&event.value["series"], errors);
    }
    if !old.is_null() {
        return;
    }
    event.at("eventTime").require(errors);
    let empty = Value::from("");
    let kind = text(&event.value["type"]);
    if !["Normal", "Warning"].contains(&kind) {
        let detail = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid("type", &empty, &detail));
    }
    for (key, shown) in UNSET {
        if is_set(&event.value[*key]) {
            errors.push(FieldError::invalid(*shown, &empty, "needs to be unset"));
        }
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => fields.values().any(is_set),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) => !items(value).is_empty(),
        other => *other != 0,
    }
}

fn series(series: &Value, errors: &mut Errors) {
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or(0) < 2 {
        let detail = "should be at least 2";
        errors.push(FieldError::invalid("series.count", &Value::from(""), detail));
    }
    if text(&series["lastObservedTime"]).is_empty() {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}

fn change(event: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    for (key, shown, kind) in FIXED {
        let before = &old[*key];
        let after = &event.value[*key];
        if before != after && (is_set(before) || is_set(after)) {
            errors.push(At::new(after, shown).invalid_as(kind, "field is immutable"));
        }
    }
}
