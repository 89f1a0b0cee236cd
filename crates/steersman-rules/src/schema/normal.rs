//! What decoding and encoding a document of a built-in kind in Go makes of it.
//!
//! Nulls in lists and maps become the zero of their type, times are written in UTC, quantities
//! canonically, and base64 in one line without odd bits: what is stored is what any typed client can
//! read. Values of the wrong type stay as they are, for [`super::decode`] to complain about.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value, json};

use super::node::{Node, Scalar, Shape};
use super::time;
use crate::go_base64;
use crate::metadata;
use crate::quantity::Quantity;

/// Brings a value, and what is below it, into its normal form.
pub(super) fn normalise(node: &Node, value: &mut Value) {
    match (&node.shape, value) {
        (Shape::Scalar(Scalar::Quantity), value) => normalise_quantity(value),
        (Shape::Scalar(scalar), Value::String(text)) => normalise_text(*scalar, text),
        (Shape::Map(inner), Value::Object(map)) => {
            for value in map.values_mut() {
                normalise_element(inner, value);
                if matches!(inner.shape, Shape::Scalar(Scalar::Quantity)) {
                    round_to_milli(value);
                }
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            for item in items {
                normalise_element(&list.item, item);
            }
        }
        (Shape::Object(_) | Shape::Named(_) | Shape::Part(_), Value::Object(map)) => {
            for (key, value) in map {
                normalise(node.child(key), value);
            }
        }
        _ => {}
    }
}

/// Writes whole numbers without a fraction, as Go does however they came.
pub(super) fn without_fractions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_fractions),
        Value::Object(fields) => fields.values_mut().for_each(without_fractions),
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole.into();
            }
        }
        _ => {}
    }
}

/// The integer that a floating point number is, if it is one.
pub(super) fn whole(number: &Number) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction, and fits")]
    let whole = float as i64;
    (float.fract() == 0.0 && float.abs() < LIMIT).then_some(whole)
}

fn normalise_element(node: &Node, value: &mut Value) {
    if value.is_null() {
        *value = zero(node);
    } else {
        normalise(node, value);
    }
}

fn normalise_quantity(value: &mut Value) {
    let canonical = match value {
        Value::String(text) => Quantity::canonical(text),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok().map(|q| q.to_string()),
        _ => None,
    };
    if let Some(canonical) = canonical {
        *value = canonical.into();
    }
}

/// Amounts of resources are never finer than a thousandth.
fn round_to_milli(value: &mut Value) {
    if let Some(amount) = Quantity::of(value)
        && amount.rounded_to_milli() != amount
    {
        *value = amount.rounded_to_milli().to_string().into();
    }
}

fn normalise_text(scalar: Scalar, text: &mut String) {
    let moment = || time::parse(text);
    match scalar {
        Scalar::Bytes if STANDARD.decode(&*text).is_ok() => {}
        Scalar::Bytes => {
            if let Ok(bytes) = go_base64::decode(text) {
                *text = STANDARD.encode(bytes);
            }
        }
        Scalar::Time if time::is_plain(text) => {}
        Scalar::Time => {
            if let Some(moment) = moment() {
                *text = metadata::time(moment);
            }
        }
        Scalar::MicroTime => {
            if let Some(moment) = moment() {
                *text = format!("{moment:.6}");
            }
        }
        _ => {}
    }
}

fn zero(node: &Node) -> Value {
    match &node.shape {
        Shape::Scalar(Scalar::String | Scalar::Bytes) => json!(""),
        Shape::Scalar(Scalar::Bool) => json!(false),
        Shape::Scalar(Scalar::Quantity) => json!("0"),
        Shape::Scalar(
            Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Number | Scalar::IntOrString,
        ) => json!(0),
        Shape::Map(_) | Shape::Object(_) | Shape::Named(_) => json!({}),
        Shape::List(_) => json!([]),
        Shape::Any
        | Shape::Raw
        | Shape::Part(_)
        | Shape::Scalar(Scalar::Time | Scalar::MicroTime) => Value::Null,
    }
}
