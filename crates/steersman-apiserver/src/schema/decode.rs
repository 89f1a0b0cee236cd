//! Type mistakes in objects of built-in kinds, worded as Kubernetes' JSON decoder words them.
//!
//! Go names the struct that holds the field and the path from the root without list indexes:
//! `json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`.

use base64::DecodeError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::node::{Node, Object, Scalar, Shape};
use super::time;
use super::unknown::join;
use crate::quantity::Quantity;

/// Where in a document the decoder is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The struct that holds the value.
    pub(super) holder: &'a str,
    pub(super) path: &'a str,
}

/// Adds the mistakes in a value and below it.
pub(super) fn check(node: &Node, value: &Value, place: Place<'_>, errors: &mut Vec<String>) {
    // The decoder takes null for "not set", whatever the type.
    if value.is_null() {
        return;
    }
    match (&node.shape, value) {
        (Shape::Scalar(scalar), _) => {
            if let Some(error) = scalar_error(*scalar, value, place) {
                errors.push(error);
            }
        }
        (Shape::Any | Shape::Raw, _) => {}
        (Shape::Map(inner), Value::Object(map)) => {
            for value in map.values() {
                check(inner, value, place, errors);
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            for item in items {
                check(&list.item, item, place, errors);
            }
        }
        (Shape::Object(_) | Shape::Named(_), Value::Object(map)) => {
            let holder = node.object().map_or("", Object::short_name);
            for (key, value) in map {
                let path = join(place.path, key);
                check(node.child(key), value, Place { holder, path: &path }, errors);
            }
        }
        _ => errors.push(mismatch(value, place, &go_type(node))),
    }
}

impl Object {
    /// `DeploymentSpec` of `v1.DeploymentSpec`.
    fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

pub(super) fn scalar_error(scalar: Scalar, value: &Value, place: Place<'_>) -> Option<String> {
    let fits = match scalar {
        Scalar::String => value.is_string(),
        Scalar::Bytes if value.is_string() => return base64_error(value),
        Scalar::Bytes => false,
        Scalar::Bool => value.is_boolean(),
        Scalar::Number => value.is_number(),
        Scalar::Int32 => is_int32(value),
        Scalar::Int64 | Scalar::Integer => value.is_i64(),
        Scalar::IntOrString => value.is_string() || is_int32(value),
        Scalar::Time | Scalar::MicroTime => return time_error(value),
        Scalar::Quantity => return quantity_error(value),
    };
    (!fits).then(|| mismatch(value, place, scalar_type(scalar)))
}

fn is_int32(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

fn base64_error(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    // Go names the byte, or the group of four that is not whole.
    let at = match STANDARD.decode(text).err()? {
        DecodeError::InvalidByte(at, _) => at,
        _ => text.len().saturating_sub(1) / 4 * 4,
    };
    Some(format!("illegal base64 data at input byte {at}"))
}

fn mismatch(value: &Value, Place { holder, path }: Place<'_>, expected: &str) -> String {
    let found = match value {
        Value::Number(number) if expected.starts_with("int") => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    if path.is_empty() {
        return format!("json: cannot unmarshal {found} into Go value of type {expected}");
    }
    format!(
        "json: cannot unmarshal {found} into Go struct field {holder}.{path} of type {expected}"
    )
}

fn go_type(node: &Node) -> String {
    match &node.shape {
        Shape::Any | Shape::Raw => "interface {}".to_owned(),
        Shape::Scalar(scalar) => scalar_type(*scalar).to_owned(),
        Shape::Named(_) | Shape::Object(_) => {
            node.object().map_or_else(String::new, |object| object.name.to_string())
        }
        Shape::Map(value) => format!("map[string]{}", go_type(value)),
        Shape::List(list) => format!("[]{}", go_type(&list.item)),
    }
}

fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String => "string",
        Scalar::Bytes => "[]uint8",
        Scalar::Bool => "bool",
        Scalar::Number => "float64",
        Scalar::Int32 | Scalar::IntOrString => "int32",
        Scalar::Int64 | Scalar::Integer => "int64",
        Scalar::Time => "v1.Time",
        Scalar::MicroTime => "v1.MicroTime",
        Scalar::Quantity => "resource.Quantity",
    }
}

fn time_error(value: &Value) -> Option<String> {
    const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
    match value.as_str() {
        Some(text) if time::parse(text).is_some() => None,
        Some(text) => {
            Some(format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {text:?} as \"2006\""))
        }
        None => Some("json: cannot unmarshal into Go value of type string".to_owned()),
    }
}

fn quantity_error(value: &Value) -> Option<String> {
    const SUFFIX: &str = "unable to parse quantity's suffix";
    const RULE: &str = "quantities must match the regular expression \
                        '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Some(RULE.to_owned()),
    };
    if Quantity::parse(&text).is_some() {
        return None;
    }
    let rest = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let suffix = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let fits = rest.len() > suffix.len() && exponent.chars().all(|c| c.is_ascii_digit());
    Some(if fits { SUFFIX } else { RULE }.to_owned())
}
