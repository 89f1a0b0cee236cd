//! Validation of custom resources against their schema, worded as Kubernetes words it.
//!
//! What makes embedded objects resources is checked in [`super::embedded`], what may not be twice in
//! a list in [`super::list_type`], and rules in CEL in [`super::expressions`].

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::correlation::Items;
use super::node::{Bound, Junctors, ListKind, Node, Rules, Scalar, Shape, Text};
use super::pattern::Pattern;
use super::way::Way;
use crate::abandoned::is_abandoned;
use crate::field::{Errors, FieldError, FieldErrorKind};

/// A value, and the one that it replaces.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) new: &'a Value,
    pub(super) old: Option<&'a Value>,
}

/// Adds the mistakes in a value and below it.
pub(super) fn validate(node: &Node, value: &Value, way: &Way<'_>, errors: &mut Errors) {
    validate_change(node, Change { new: value, old: None }, way, errors);
}

/// Adds the mistakes in a value and below it, but for what is as it was: a definition that has
/// become stricter does not keep anybody from changing something else.
pub(super) fn validate_change(node: &Node, change: Change<'_>, way: &Way<'_>, errors: &mut Errors) {
    let Change { new: value, old } = change;
    if old == Some(value) {
        return;
    }
    // Who has so many mistakes is not told more of them.
    if value.is_null() && node.is_nullable() || errors.is_full() {
        return;
    }
    let typeless = node.rules.as_ref().is_some_and(|rules| rules.typeless);
    if let Some(expected) = type_mismatch(&node.shape, value) {
        if !typeless {
            errors.push(wrong_type(&way.text(), expected, value));
            if expected == "integer" && value.is_number() {
                let is_short = matches!(node.shape, Shape::Scalar(Scalar::Int32));
                let format = if is_short { "with format int32" } else { "(default format)" };
                errors.push(no_such_integer(format, way));
            }
        }
        if let (Some(rules), Shape::Scalar(Scalar::IntOrString)) = (&node.rules, &node.shape)
            && let Some(junctors) = &rules.junctors
        {
            check_junctors(junctors, value, way, errors);
        }
        return;
    }
    if matches!(node.shape, Shape::Scalar(Scalar::Int32)) && !fits_32_bits(value) {
        errors.push(no_such_integer("with format int32", way));
    }
    if let Some(rules) = &node.rules {
        check(rules, value, way, errors);
        if let Some(junctors) = &rules.junctors {
            check_junctors(junctors, value, way, errors);
        }
    }
    below(node, change, way, errors);
    if let (Some(rules), Value::Array(items)) = (&node.rules, value) {
        sizes(items.len(), rules, value, way, errors);
    }
}

/// Adds the mistakes in what a value holds.
fn below(node: &Node, change: Change<'_>, way: &Way<'_>, errors: &mut Errors) {
    let Change { new: value, old } = change;
    match value {
        Value::Object(map) => {
            for field in node.object().map(|object| &object.fields).into_iter().flatten() {
                if field.required
                    && field.node.rules.is_some()
                    && !map.contains_key(field.name.as_ref())
                {
                    errors.push(FieldError::required(way.field(&field.name).text(), ""));
                }
            }
            for (key, value) in map {
                let below = match node.shape {
                    Shape::Map(_) => way.key(key),
                    _ => way.field(key),
                };
                let old = old.and_then(|old| old.get(key));
                validate_change(node.child(key), Change { new: value, old }, &below, errors);
            }
        }
        Value::Array(items) => {
            let before = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let before = Items::new(keys_of(node), before);
            for (index, item) in items.iter().enumerate() {
                let change = Change { new: item, old: before.like(item) };
                validate_change(node.item(), change, &way.index(index), errors);
            }
        }
        _ => {}
    }
}

/// By which keys the items of a list are known again, if they are.
fn keys_of(node: &Node) -> Option<&[Text]> {
    match &node.shape {
        Shape::List(list) => match &list.kind {
            ListKind::Map(keys) => Some(keys),
            _ => None,
        },
        _ => None,
    }
}

/// The type that the schema wants, if the value is of another.
fn type_mismatch(shape: &Shape, value: &Value) -> Option<&'static str> {
    let (fits, expected) = match shape {
        Shape::Any | Shape::Raw | Shape::Part(_) => return None,
        Shape::Object(_) | Shape::Named(_) | Shape::Map(_) => (value.is_object(), "object"),
        Shape::List(_) => (value.is_array(), "array"),
        Shape::Scalar(Scalar::Bool) => (value.is_boolean(), "boolean"),
        Shape::Scalar(Scalar::Number) => (value.is_number(), "number"),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Integer) => {
            (is_integer(value), "integer")
        }
        Shape::Scalar(Scalar::IntOrString) => {
            (value.is_string() || is_integer(value), "integer,string")
        }
        Shape::Scalar(Scalar::Quantity) => (value.is_string() || value.is_number(), "string"),
        Shape::Scalar(_) => (value.is_string(), "string"),
    };
    (!fits).then_some(expected)
}

fn wrong_type(path: &str, expected: &str, value: &Value) -> FieldError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let text =
        format!("Invalid value: {found:?}: {path} in body must be of type {expected}: {found:?}");
    FieldError { kind: FieldErrorKind::TypeInvalid, field: path.to_owned(), text }
}

/// What Kubernetes says besides of a number that should be whole, or shorter.
fn no_such_integer(format: &str, way: &Way<'_>) -> FieldError {
    let why = format!("Checked value must be of type integer {format} in {}", way.text());
    FieldError::invalid("<nil>", &Value::from(""), &why)
}

fn fits_32_bits(value: &Value) -> bool {
    let all = f64::from(i32::MIN)..=f64::from(i32::MAX);
    value.as_f64().is_some_and(|number| all.contains(&number))
}

/// JSON knows no integers, so `3.0` is one; what is larger than they are is none.
fn is_integer(value: &Value) -> bool {
    let is_whole =
        |number: f64| number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0;
    value.is_i64() || value.is_f64() && value.as_f64().is_some_and(is_whole)
}

/// A number as Kubernetes shows it: a whole one without a fraction, however it was written.
fn shown(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

fn check(rules: &Rules, value: &Value, way: &Way<'_>, errors: &mut Errors) {
    let mut invalid = |detail: String| {
        let path = way.text();
        errors.push(FieldError::invalid(path.as_str(), value, &format!("{path} in body {detail}")));
    };
    match value {
        Value::Number(number) => {
            if let Some(factor) = rules.multiple_of.filter(|f| !is_multiple(number, *f)) {
                invalid(format!("should be a multiple of {factor}"));
            }
            let limits = [(&rules.minimum, "greater", true), (&rules.maximum, "less", false)];
            for (bound, word, lower) in limits {
                if let Some(bound) = bound.as_ref().filter(|bound| exceeds(number, bound, lower)) {
                    let or_equal = if bound.exclusive { "" } else { " or equal to" };
                    let limit = shown(&bound.value);
                    invalid(format!("should be {word} than{or_equal} {limit}"));
                }
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            if let Some(min) = rules.length.min.filter(|min| length < *min) {
                invalid(format!("should be at least {min} chars long"));
            }
            if let Some(max) = rules.length.max.filter(|max| length > *max) {
                let max = usize::try_from(max).unwrap_or(usize::MAX);
                errors.push(FieldError::too_long(way.text(), max));
            }
            check_text(rules, text, way, errors);
        }
        Value::Array(items) => {
            let mut seen = HashSet::new();
            if rules.unique && !items.iter().all(|item| seen.insert(item.to_string())) {
                let path = way.text();
                let detail = format!("{path} in body shouldn't contain duplicates");
                errors.push(FieldError::invalid(path, &Value::from(""), &detail));
            }
        }
        Value::Object(map) => sizes(map.len(), rules, value, way, errors),
        _ => {}
    }
    if !rules.enumeration.is_empty() && !rules.enumeration.iter().any(|one| is_same(one, value)) {
        errors.push(not_in(&rules.enumeration, value, &way.text()));
    }
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

/// Patterns and formats.
fn check_text(rules: &Rules, text: &str, way: &Way<'_>, errors: &mut Errors) {
    let matches = |pattern: &Pattern| !is_abandoned() && pattern.matches(text);
    if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !matches(pattern)) {
        let path = way.text();
        let broken = pattern.mistake().map(|why| format!(", but pattern is invalid: {why}"));
        let detail =
            format!("{path} in body should match '{}{}'", pattern.text, broken.unwrap_or_default());
        errors.push(FieldError::invalid(path, &text.into(), &detail));
    }
    if let Some((name, _)) = rules.format.as_ref().filter(|(_, format)| !format.accepts(text)) {
        let field = way.text();
        let text =
            format!("Invalid value: {text:?}: {field} in body must be of type {name}: {text:?}");
        errors.push(FieldError { kind: FieldErrorKind::TypeInvalid, field, text });
    }
}

/// What other schemas say of the same value. Of alternatives that all fail, the mistakes of the
/// one with the fewest are told.
fn check_junctors(junctors: &Junctors, value: &Value, way: &Way<'_>, errors: &mut Errors) {
    let mistakes = |node: &Node| {
        let mut mistakes = Errors::default();
        validate(node, value, way, &mut mistakes);
        mistakes
    };
    let mut told = Errors::default();
    let fewest =
        |all: Vec<Errors>| all.into_iter().min_by_key(|found| found.len()).unwrap_or_default();
    let any: Vec<_> = junctors.any_of.iter().map(mistakes).collect();
    if !any.is_empty() && any.iter().all(|mistakes| !mistakes.is_empty()) {
        told.push(junction(way, "must validate at least one schema (anyOf)"));
        told.extend(fewest(any));
    }
    let one: Vec<_> = junctors.one_of.iter().map(mistakes).collect();
    let valid = one.iter().filter(|mistakes| mistakes.is_empty()).count();
    if !one.is_empty() && valid != 1 {
        let found = match valid {
            0 => "Found none valid".to_owned(),
            n => format!("Found {n} valid alternatives"),
        };
        let text = format!("must validate one and only one schema (oneOf). {found}");
        told.push(junction(way, &text));
        if valid == 0 {
            told.extend(fewest(one));
        }
    }
    let all: Vec<_> = junctors.all_of.iter().map(mistakes).collect();
    if all.iter().any(|mistakes| !mistakes.is_empty()) {
        let none = if all.iter().any(|found| found.is_empty()) { "" } else { ". None validated" };
        let text = format!("must validate all the schemas (allOf){none}");
        told.extend(all.into_iter().flatten());
        told.push(junction(way, &text));
    }
    if junctors.not.as_ref().is_some_and(|not| mistakes(not).is_empty()) {
        told.push(junction(way, "must not validate the schema (not)"));
    }
    errors.extend(told);
}

/// What other schemas say does not fit; Kubernetes tells it of the whole object.
fn junction(way: &Way<'_>, text: &str) -> FieldError {
    let path = way.text();
    FieldError::invalid("<nil>", &Value::from(""), &format!("{path:?} {text}"))
}

fn is_multiple(number: &Number, factor: f64) -> bool {
    let Some(value) = number.as_f64() else { return true };
    // Like upstream: the inverse of a small factor is closer to a whole number.
    let quotient = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
    (quotient - quotient.round()).abs() < 1e-9
}

fn exceeds(number: &Number, bound: &Bound, lower: bool) -> bool {
    let (Some(number), Some(limit)) = (number.as_f64(), bound.value.as_f64()) else { return false };
    let (small, large) = if lower { (number, limit) } else { (limit, number) };
    small < large || (bound.exclusive && small == large)
}

/// Numbers of items or properties.
fn sizes(len: usize, rules: &Rules, value: &Value, way: &Way<'_>, errors: &mut Errors) {
    let (range, noun) =
        if value.is_array() { (rules.items, "items") } else { (rules.properties, "properties") };
    if let Some(min) = range.min.filter(|min| (len as u64) < *min) {
        let path = way.text();
        let detail = format!("{path} in body should have at least {min} {noun}");
        errors.push(FieldError::invalid(path, &Value::from(len), &detail));
    }
    if let Some(max) = range.max.filter(|max| len as u64 > *max) {
        let items = if max == 1 { "item" } else { "items" };
        let text = format!("Too many: {len}: must have at most {max} {items}");
        errors.push(FieldError { kind: FieldErrorKind::TooMany, field: way.text(), text });
    }
}

fn not_in(allowed: &[Value], value: &Value, path: &str) -> FieldError {
    let allowed: Vec<String> = allowed
        .iter()
        .map(|allowed| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned))
        .collect();
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    FieldError::not_supported(path, value, &allowed)
}
