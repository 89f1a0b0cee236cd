//! Looking into documents.

use serde_json::Value;

pub(super) use crate::document::items;

/// The text in a field; empty where there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Appends to the list in a field, which is made where there is none.
pub(super) fn push(object: &mut Value, field: &str, item: Value) {
    let Some(fields) = object.as_object_mut() else { return };
    match fields.get_mut(field) {
        Some(Value::Array(items)) => items.push(item),
        _ => drop(fields.insert(field.to_owned(), Value::Array(vec![item]))),
    }
}

/// Puts a value into a field; says whether it was not there before.
pub(super) fn set(object: &mut Value, field: &str, value: impl Into<Value>) -> bool {
    let Some(fields) = object.as_object_mut() else { return false };
    let value = value.into();
    if fields.get(field) == Some(&value) {
        return false;
    }
    fields.insert(field.to_owned(), value);
    true
}
