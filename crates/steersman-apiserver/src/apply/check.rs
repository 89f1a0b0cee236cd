//! Whether an applied configuration makes sense at all.

use serde_json::Value;

use super::typed::steps;
use crate::schema::{Node, Relation, Scalar, Shape};

/// What is wrong with an applied configuration, if anything: unknown fields, wrong types, list
/// items without keys or with the same keys.
pub(super) fn check(node: &Node, value: &Value) -> Result<(), String> {
    check_below(node, value, "")
}

fn check_below(node: &Node, value: &Value, path: &str) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    check_type(&node.shape, value)
        .map_err(|expected| format!("{path}: {expected}, got {value}"))?;
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if node.is_closed() && node.field(key).is_none() {
                    return Err(format!("{path}.{key}: field not declared in schema"));
                }
                check_below(node.child(key), value, &format!("{path}.{key}"))?;
            }
        }
        Value::Array(_) => check_items(node, value, path)?,
        _ => {}
    }
    Ok(())
}

fn check_items(node: &Node, value: &Value, path: &str) -> Result<(), String> {
    let relation = node.relation(value);
    let mut seen = Vec::new();
    for (index, (step, item)) in steps(relation, value).into_iter().enumerate() {
        if matches!(relation, Relation::Leaf) {
            check_below(node.item(), item, &format!("{path}[{index}]"))?;
            continue;
        }
        let step = step.map_err(|error| format!("{path}: element {index}: {error}"))?;
        if seen.contains(&step) {
            return Err(format!("{path}: duplicate entries for key {step}"));
        }
        check_below(node.item(), item, &format!("{path}{step}"))?;
        seen.push(step);
    }
    Ok(())
}

/// What was expected, if the value is of another type.
fn check_type(shape: &Shape, value: &Value) -> Result<(), &'static str> {
    let (fits, expected) = match shape {
        Shape::Any | Shape::Raw => (true, ""),
        Shape::Object(_) | Shape::Named(_) | Shape::Map(_) => (value.is_object(), "expected map"),
        Shape::List(_) => (value.is_array(), "expected list"),
        Shape::Scalar(scalar) => match scalar {
            Scalar::Bool => (value.is_boolean(), "expected boolean"),
            Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Number => {
                (value.is_number(), "expected numeric (int or float)")
            }
            Scalar::IntOrString | Scalar::Quantity => {
                (value.is_string() || value.is_number(), "expected scalar")
            }
            _ => (value.is_string(), "expected string"),
        },
    };
    if fits { Ok(()) } else { Err(expected) }
}
