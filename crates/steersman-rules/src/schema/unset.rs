//! Fields in which nothing is set: which of them a document has all the same.
//!
//! Kubernetes decodes a document into a struct and writes the struct. A field without `omitempty`
//! is then there whether it was sent or not, and a zero of one with it is gone. Clients see that in
//! every answer, and who owns a field is decided by it.

use serde_json::{Map, Value, json};

use super::node::{Field, Node, Object, Scalar, Shape, Unset};

/// Brings a value, and what is below it, into the form that writing it from a struct gives. Values
/// of the wrong type stay.
pub(crate) fn settle(node: &Node, value: &mut Value) {
    match (&node.shape, value) {
        (Shape::Map(inner), Value::Object(map)) => {
            map.values_mut().for_each(|value| settle(inner, value));
        }
        (Shape::List(list), Value::Array(items)) => {
            items.iter_mut().for_each(|item| settle(&list.item, item));
        }
        (Shape::Named(_) | Shape::Part(_), Value::Object(map)) => {
            node.object().into_iter().for_each(|object| settle_fields(object, map));
        }
        _ => {}
    }
}

/// Looks at what is there, and at the few fields that are there even when nothing is set: a struct has
/// many more.
fn settle_fields(object: &Object, map: &mut Map<String, Value>) {
    let mut emptied = Vec::new();
    for (name, value) in map.iter_mut() {
        let Some(field) = object.field(name) else { continue };
        if !is_unset(field, value) {
            settle(&field.node, value);
        } else if let Some(written) = written(field) {
            *value = written;
        } else {
            emptied.push(name.clone());
        }
    }
    emptied.iter().for_each(|name| drop(map.remove(name)));
    for field in object.written() {
        if !map.contains_key(&*field.name) {
            map.extend(written(field).map(|written| (field.name.to_string(), written)));
        }
    }
}

/// Whether a value says no more than that nothing is set.
fn is_unset(field: &Field, value: &Value) -> bool {
    match (value, &field.node.shape) {
        // Where anything may stand, null is a value: a default in a schema, for one.
        (Value::Null, Shape::Any | Shape::Raw) => false,
        (Value::Null, _) => true,
        // Managers that are none are to be forgotten; absent ones stay.
        (Value::Array(items), Shape::List(_)) => {
            items.is_empty() && field.name.as_ref() != "managedFields"
        }
        (Value::Object(map), Shape::Map(_)) => map.is_empty(),
        (Value::String(text), Shape::Scalar(Scalar::Bytes)) => text.is_empty(),
        _ => field.unset == Unset::OmitEmpty && is_zero(value),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// What is written of a field in which nothing is set.
fn written(field: &Field) -> Option<Value> {
    match field.unset {
        Unset::Absent | Unset::OmitEmpty => None,
        Unset::Null => Some(Value::Null),
        Unset::Zero => Some(zero(&field.node)),
    }
}

fn zero(node: &Node) -> Value {
    match &node.shape {
        Shape::Scalar(Scalar::String) => json!(""),
        Shape::Scalar(Scalar::Bool) => json!(false),
        Shape::Scalar(Scalar::Quantity) => json!("0"),
        Shape::Scalar(
            Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Number | Scalar::IntOrString,
        ) => json!(0),
        Shape::Named(_) => {
            let mut fields = json!({});
            settle(node, &mut fields);
            fields
        }
        _ => Value::Null,
    }
}
