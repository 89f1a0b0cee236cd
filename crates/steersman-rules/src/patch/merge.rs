//! RFC 7396: a patch that looks like the part of the object that it changes.

use serde_json::{Map, Value};

/// Merges a patch into an object; nulls remove.
pub(super) fn merge(object: &mut Value, patch: &Value) {
    match (&mut *object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            for (key, value) in patch {
                merge_field(object, key, value);
            }
        }
        (Value::Object(_), patch) => *object = patch.clone(),
        (_, patch) => *object = fresh(patch),
    }
}

fn merge_field(object: &mut Map<String, Value>, key: &str, value: &Value) {
    if value.is_null() {
        object.remove(key);
        return;
    }
    match object.get_mut(key) {
        Some(old) => merge(old, value),
        None => {
            object.insert(key.to_owned(), fresh(value));
        }
    }
}

/// A value that has nothing to merge into: its nulls remove nothing, and are not kept.
fn fresh(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), fresh(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(fresh).collect()),
        scalar => scalar.clone(),
    }
}
