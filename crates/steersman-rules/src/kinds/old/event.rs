//! Events, of the core group and of `events.k8s.io`: where they may be, and what the newer sort
//! must say.

use std::time::Duration;

use serde_json::Value;

use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, text};

const LIMITS: &[(&str, usize)] = &[("action", 128), ("reason", 128)];

/// Both groups are stored in one place, so both say how long.
const TTL: Option<Duration> = Some(Duration::from_secs(3600));

const NOTE_MAX: usize = 1024;
const INSTANCE_MAX: usize = 128;

/// The names that the two groups have for one field.
struct Names {
    regarding: &'static str,
    note: &'static str,
    controller: &'static str,
}

const CORE: Names =
    Names { regarding: "involvedObject", note: "message", controller: "reportingComponent" };
const NEW: Names =
    Names { regarding: "regarding", note: "note", controller: "reportingController" };

/// The strategy of events of the core group.
pub(in crate::kinds) const EVENT: Rules =
    Rules { check: |event, _, errors| common(event, &CORE, errors), ttl: TTL, ..Rules::NONE };

/// The strategy of events of `events.k8s.io`.
pub(in crate::kinds) const NEW_EVENT: Rules =
    Rules { check: new_event, change, ttl: TTL, ..Rules::NONE };

/// Fields of old that the newer group does not take, and how complaints call them.
const UNSET: &[(&str, &str)] = &[
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
];

/// Fields that stay what they were, and how complaints call them.
const FIXED: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("reason", "reason"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

fn common(event: &At<'_, '_>, names: &Names, errors: &mut Errors) {
    let namespace = text(&event.value["metadata"]["namespace"]);
    let about = text(&event.value[names.regarding]["namespace"]);
    let old_style = event.at("eventTime").is_empty();
    let misplaced = match (old_style, about) {
        (true, "") => !["", "default"].contains(&namespace),
        (true, about) => about != namespace,
        (false, "") => !["default", "kube-system"].contains(&namespace),
        (false, _) => false,
    };
    if misplaced {
        let detail = "does not match event.namespace";
        let field = "involvedObject.namespace";
        errors.push(FieldError::invalid(field, &Value::from(about), detail));
    }
    if !old_style {
        new_style(event, names, errors);
    }
}

fn new_style(event: &At<'_, '_>, names: &Names, errors: &mut Errors) {
    let controller = event.at(names.controller);
    controller.require(errors);
    let complaints = names::qualified_name(controller.text());
    let given = Value::from(controller.text());
    errors.extend(complaints.iter().map(|c| FieldError::invalid(names.controller, &given, c)));
    event.at("reportingInstance").require(errors);
    at_most(event, "reportingInstance", "reportingInstance", INSTANCE_MAX, errors);
    for (key, max) in LIMITS {
        event.at(key).require(errors);
        at_most(event, key, key, *max, errors);
    }
    at_most(event, names.note, "message", NOTE_MAX, errors);
}

fn at_most(event: &At<'_, '_>, key: &str, shown: &str, max: usize, errors: &mut Errors) {
    if text(&event.value[key]).len() > max {
        let detail = format!("can have at most {max} characters");
        errors.push(FieldError::invalid(shown, &Value::from(""), &detail));
    }
}

fn new_event(event: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    common(event, &NEW, errors);
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
    for (key, shown) in FIXED {
        let (before, after) = (&old[*key], &event.value[*key]);
        if before != after && (is_set(before) || is_set(after)) {
            errors.push(FieldError::invalid(*shown, after, "field is immutable"));
        }
    }
}
