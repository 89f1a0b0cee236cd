//! Validation of custom resources against their schema, worded as Kubernetes words it.
//!
//! A value is looked at from all sides, whatever was found on the others, in the order of Kubernetes:
//! its type, what [other schemas](super::junctors) say of it, what goes with texts,
//! [numbers](super::number) and lists, the values that are allowed, and what goes with objects.
//!
//! What makes embedded objects resources is checked in [`super::embedded`], what may not be twice in
//! a list in [`super::list_type`], and rules in CEL in [`super::expressions`].

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::correlation::{Items, is_unchanged, keys_of};
use super::node::{Node, Rules, Scalar, Shape};
use super::pattern::Pattern;
use super::way::Way;
use super::{junctors, number};
use crate::abandoned::is_abandoned;
use crate::field::{Errors, FieldError, FieldErrorKind, shown};

/// A value, and the one that it replaces.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) new: &'a Value,
    pub(super) old: Option<&'a Value>,
}

/// Adds the mistakes in a value and below it, but for what is as it was: a definition that has
/// become stricter does not keep anybody from changing something else.
///
/// Says how much of the schema came into it. Of alternatives that all fail Kubernetes tells of the one of
/// which most did.
pub(super) fn validate(
    node: &Node,
    change: Change<'_>,
    way: &Way<'_>,
    errors: &mut Errors,
) -> usize {
    let Change { new: value, old } = change;
    let node = node.said();
    // Who has so many mistakes is not told more of them.
    let Some(rules) = node.rules.as_deref().filter(|_| !errors.is_full()) else { return 0 };
    if old.is_some_and(|old| is_unchanged(node, value, old)) {
        return 0;
    }
    let types = types_of(node, rules);
    if value.is_null() {
        return of_null(rules, types, way, errors);
    }
    // What always comes into it: other schemas, which count twice, the allowed values, and the end.
    let mut matches = 4;
    if !types.is_empty() || rules.format.is_some() {
        matches += 1 + usize::from(of_type(rules, types, value, way, errors));
    }
    if let Some(junctors) = &rules.junctors {
        matches += junctors::check(junctors, value, way, errors);
    }
    match value {
        Value::String(text) => matches += of_text(rules, text, way, errors),
        Value::Number(given) => {
            number::check(rules, types, given, way, errors);
            matches += 2;
        }
        Value::Array(items) => matches += 2 + of_items(node, rules, items, old, way, errors),
        _ => {}
    }
    allowed(rules, value, way, errors);
    if let Value::Object(map) = value {
        matches += 1 + of_fields(node, rules, map, old, way, errors);
    }
    matches
}

/// The types that a schema names.
fn types_of(node: &Node, rules: &Rules) -> &'static [&'static str] {
    match &node.shape {
        _ if rules.typeless => &[],
        Shape::Any | Shape::Raw | Shape::Part(_) => &[],
        Shape::Object(_) | Shape::Named(_) | Shape::Map(_) => &["object"],
        Shape::List(_) => &["array"],
        Shape::Scalar(Scalar::Bool) => &["boolean"],
        Shape::Scalar(Scalar::Number) => &["number"],
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Integer) => &["integer"],
        Shape::Scalar(Scalar::IntOrString) => &["integer", "string"],
        Shape::Scalar(_) => &["string"],
    }
}

/// Of null only the type and the allowed values are looked at, and no list of these has it.
fn of_null(rules: &Rules, types: &[&str], way: &Way<'_>, errors: &mut Errors) -> usize {
    let fits = types.is_empty() || rules.nullable;
    if !fits {
        errors.push(wrong_type(way, &types.join(","), "null"));
    }
    allowed(rules, &Value::Null, way, errors);
    usize::from(fits)
}

/// Whether a value is of one of the types. Where a format is named as well, mistakes are told by that.
fn of_type(
    rules: &Rules,
    types: &[&str],
    value: &Value,
    way: &Way<'_>,
    errors: &mut Errors,
) -> bool {
    let (found, found_format) = type_of(value);
    let is_number = types.iter().any(|kind| ["integer", "number"].contains(kind));
    let fits = types.contains(&found)
        || found == "integer" && types.contains(&"number")
        || types.contains(&"integer") && value.as_f64().is_some_and(number::is_whole);
    let format = rules.number.or_else(|| rules.format.as_ref().map(|(name, _)| name.as_str()));
    let has_none = matches!(value, Value::String(_) | Value::Array(_));
    match format {
        Some(format) if !has_none && !fits && format != found_format => {
            errors.push(wrong_type(way, format, found_format));
            false
        }
        Some(_) if has_none && !is_number => true,
        _ if fits => true,
        _ => {
            errors.push(wrong_type(way, &types.join(","), found));
            false
        }
    }
}

/// The type of a value that is not null, and the format that Go has it in.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn wrong_type(way: &Way<'_>, expected: &str, found: &str) -> FieldError {
    let field = way.text();
    let found = Value::from(found);
    let detail = format!("{field} in body must be of type {expected}: {}", shown(&found));
    FieldError { kind: FieldErrorKind::TypeInvalid, ..FieldError::invalid(field, &found, &detail) }
}

/// Adds a mistake in a value, told as Kubernetes tells most: by the path once more.
fn invalid(value: &Value, detail: &str, way: &Way<'_>, errors: &mut Errors) {
    let path = way.text();
    let detail = format!("{path} in body {detail}");
    errors.push(FieldError::invalid(path, value, &detail));
}

/// Length, pattern and format. Of the first two only one mistake is told.
fn of_text(rules: &Rules, text: &str, way: &Way<'_>, errors: &mut Errors) -> usize {
    let length = text.chars().count() as u64;
    let matches = |pattern: &Pattern| !is_abandoned() && pattern.matches(text);
    if let Some(max) = rules.length.max.filter(|max| length > *max) {
        errors.push(FieldError::too_long(way.text(), usize::try_from(max).unwrap_or(usize::MAX)));
    } else if let Some(min) = rules.length.min.filter(|min| length < *min) {
        let detail = format!("should be at least {min} chars long");
        invalid(&text.into(), &detail, way, errors);
    } else if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !matches(pattern)) {
        let broken = pattern.mistake().map(|why| format!(", but pattern is invalid: {why}"));
        let detail = format!("should match '{}{}'", pattern.text, broken.unwrap_or_default());
        invalid(&text.into(), &detail, way, errors);
    }
    let Some((name, format)) = &rules.format else { return 1 };
    if !format.accepts(text) {
        errors.push(wrong_type(way, name, text));
    }
    2
}

/// Items, and how many there are. Items are compared with those that have the same keys.
fn of_items(
    node: &Node,
    rules: &Rules,
    items: &[Value],
    old: Option<&Value>,
    way: &Way<'_>,
    errors: &mut Errors,
) -> usize {
    let before = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let before = Items::new(keys_of(node), before);
    let mut matches = 0;
    for (index, item) in items.iter().enumerate() {
        let change = Change { new: item, old: before.like(item) };
        matches += validate(node.item(), change, &way.index(index), errors);
    }
    if let Some(min) = rules.items.min.filter(|min| (items.len() as u64) < *min) {
        let detail = format!("should have at least {min} items");
        invalid(&items.len().into(), &detail, way, errors);
    }
    if let Some(max) = rules.items.max.filter(|max| items.len() as u64 > *max) {
        errors.push(too_many(way, items.len(), max));
    }
    let mut seen = HashSet::new();
    if rules.unique && !items.iter().all(|item| seen.insert(item.to_string())) {
        let path = way.text();
        let detail = format!("{path} in body shouldn't contain duplicates");
        errors.push(FieldError::invalid(path, &Value::from(""), &detail));
    }
    matches
}

/// Fields, and how many there are.
fn of_fields(
    node: &Node,
    rules: &Rules,
    map: &Map<String, Value>,
    old: Option<&Value>,
    way: &Way<'_>,
    errors: &mut Errors,
) -> usize {
    if let Some(min) = rules.properties.min.filter(|min| (map.len() as u64) < *min) {
        let detail = format!("should have at least {min} properties");
        invalid(&map.len().into(), &detail, way, errors);
    }
    if let Some(max) = rules.properties.max.filter(|max| map.len() as u64 > *max) {
        errors.push(too_many(way, map.len(), max));
    }
    let unknown = |key: &&String| rules.closed && node.field(key).is_none();
    for key in map.keys().filter(unknown) {
        if errors.is_full() {
            break;
        }
        let path = way.text();
        let detail = format!("{} in body is a forbidden property", way.key(key).text());
        errors.push(FieldError::invalid(path, &key.as_str().into(), &detail));
    }
    let mut matches = 0;
    for (key, value) in map {
        let below = match node.shape {
            Shape::Map(_) => way.key(key),
            _ => way.field(key),
        };
        // In which version an object was written cannot be seen any more.
        let is_version = way.is_root() && ["apiVersion", "kind"].contains(&key.as_str());
        let old = old.filter(|_| !is_version).and_then(|old| old.get(key));
        matches += validate(node.child(key), Change { new: value, old }, &below, errors);
    }
    for name in rules.required.iter().filter(|name| !map.contains_key(name.as_ref())) {
        errors.push(FieldError::required(way.field(name).text(), ""));
    }
    matches
}

fn too_many(way: &Way<'_>, found: usize, max: u64) -> FieldError {
    FieldError::too_many(way.text(), found, usize::try_from(max).unwrap_or(usize::MAX))
}

fn allowed(rules: &Rules, value: &Value, way: &Way<'_>, errors: &mut Errors) {
    let values = &rules.enumeration;
    let is_one = || !value.is_null() && values.iter().any(|one| is_same(one, value));
    if values.is_empty() || is_one() {
        return;
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let texts: Vec<String> = values.iter().map(text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    errors.push(FieldError::not_supported(way.text(), value, &texts));
}

/// Whether two values are the same: numbers are, however they are written.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        _ => one == other,
    }
}
