//! Events of the core group: where they may be, and what those in the new style must say. Events of
//! `events.k8s.io` are the same objects with other names for some fields.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::table::cells::{number, text};
use crate::table::{Column, duration};

/// What is said of `Event`.
pub(super) const KIND: Kind = Kind {
    plural: "events",
    name: "Event",
    short_names: &["ev"],
    traits: &[Trait::CreateOnUpdate],
    selectable_fields: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const LIMITS: &[(&str, usize)] = &[("action", 128), ("reason", 128)];

/// Both groups are stored in one place, so both say how long.
pub(in crate::kinds) const TTL: Option<Duration> = Some(Duration::from_secs(3600));

const NOTE_MAX: usize = 1024;
const INSTANCE_MAX: usize = 128;

/// The names that the two groups have for one field.
pub(in crate::kinds) struct Names {
    /// What it is about.
    pub(in crate::kinds) regarding: &'static str,
    /// What it says.
    pub(in crate::kinds) note: &'static str,
    /// Who says it.
    pub(in crate::kinds) controller: &'static str,
}

const NAMES: Names =
    Names { regarding: "involvedObject", note: "message", controller: "reportingComponent" };

const RULES: Rules =
    Rules { check: |event, _, errors| check(event, &NAMES, errors), ttl: TTL, ..Rules::NONE };

/// The mistakes in an event of either group.
pub(in crate::kinds) fn check(event: &At<'_, '_>, names: &Names, errors: &mut Errors) {
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

/// What `kubectl get events` shows, of either group.
pub(in crate::kinds) fn columns() -> Vec<Column> {
    vec![
        Column::text("Last Seen", |event, now| last_seen(event, now).into()),
        Column::field("Type", "type", ""),
        Column::field("Reason", "reason", ""),
        Column::text("Object", target),
        Column::text("Subobject", |event, _| text(&regarding(event)["fieldPath"]).into()).wide(),
        Column::text("Source", source).wide(),
        Column::text("Message", |event, _| {
            either(event, ["message", "note"]).as_str().unwrap_or_default().trim().into()
        }),
        Column::text("First Seen", |event, now| first_seen(event, now).into()).wide(),
        Column::text("Count", count).wide(),
        Column::field("Name", "metadata.name", "").called_name().wide(),
    ]
}

/// The first of two names of a field that the event has: its group decides which.
fn either<'a>(event: &'a Value, names: [&str; 2]) -> &'a Value {
    let [core, new] = names.map(|name| &event[name]);
    if core.is_null() { new } else { core }
}

fn regarding(event: &Value) -> &Value {
    either(event, ["involvedObject", "regarding"])
}

fn target(event: &Value, _: Timestamp) -> Value {
    let object = regarding(event);
    let kind = text(&object["kind"]).to_lowercase();
    match text(&object["name"]) {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn first_seen(event: &Value, now: Timestamp) -> String {
    let first = text(either(event, ["firstTimestamp", "deprecatedFirstTimestamp"]));
    duration::since(if first.is_empty() { text(&event["eventTime"]) } else { first }, now)
}

fn last_seen(event: &Value, now: Timestamp) -> String {
    let last = text(either(event, ["lastTimestamp", "deprecatedLastTimestamp"]));
    match (&event["series"], last) {
        (Value::Null, "") => first_seen(event, now),
        (Value::Null, last) => duration::since(last, now),
        (series, _) => duration::since(text(&series["lastObservedTime"]), now),
    }
}

/// An event of a series counts as often as the series says, and any other at least once.
fn count(event: &Value, _: Timestamp) -> Value {
    let single = || match number(either(event, ["count", "deprecatedCount"])) {
        0 => 1,
        count => count,
    };
    match &event["series"] {
        Value::Null => single().into(),
        series => number(&series["count"]).into(),
    }
}

fn source(event: &Value, _: Timestamp) -> Value {
    let source = either(event, ["source", "deprecatedSource"]);
    let first = |texts: [&Value; 2]| {
        texts.into_iter().map(text).find(|text| !text.is_empty()).unwrap_or_default().to_owned()
    };
    let reporter = either(event, ["reportingComponent", "reportingController"]);
    let component = first([&source["component"], reporter]);
    match first([&source["host"], &event["reportingInstance"]]).as_str() {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}
