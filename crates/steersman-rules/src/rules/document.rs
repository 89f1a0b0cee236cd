//! Reading and filling documents without caring whether a part is there.
//!
//! Null counts as absent, as it does when Kubernetes decodes. Nothing here fails on a part of
//! the wrong type: the schema complains about those.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Sets a field that is absent.
pub(crate) fn fill(object: &mut Value, key: &str, value: impl Into<Value>) {
    if object[key].is_null() {
        set(object, key, value);
    }
}

/// Sets a text that is absent or empty.
pub(crate) fn fill_text(object: &mut Value, key: &str, value: &str) {
    if text(&object[key]).is_empty() && (object[key].is_null() || object[key].is_string()) {
        set(object, key, value);
    }
}

/// Sets a number that is absent or zero.
pub(crate) fn fill_number(object: &mut Value, key: &str, value: i64) {
    if object[key].is_null() || object[key] == 0 {
        set(object, key, value);
    }
}

/// Sets a field, if the object is one.
pub(crate) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value.into());
    }
}

/// Removes a field.
pub(crate) fn remove(object: &mut Value, key: &str) -> Option<Value> {
    object.as_object_mut().and_then(|fields| fields.remove(key))
}

/// Works on the object in a field, which is made if it is absent.
pub(crate) fn within(object: &mut Value, key: &str, work: impl FnOnce(&mut Value)) {
    fill(object, key, json!({}));
    within_existing(object, key, work);
}

/// Works on the object in a field, if there is one.
pub(crate) fn within_existing(object: &mut Value, key: &str, work: impl FnOnce(&mut Value)) {
    if let Some(child) = object.get_mut(key).filter(|child| child.is_object()) {
        work(child);
    }
}

/// Puts an annotation back to what it was.
pub(crate) fn keep_annotation(old: &Value, new: &mut Value, key: &str) {
    let kept = &old["metadata"]["annotations"][key];
    if new["metadata"]["annotations"][key] == *kept {
        return;
    }
    within(new, "metadata", |metadata| {
        within(metadata, "annotations", |annotations| match kept {
            Value::Null => drop(remove(annotations, key)),
            kept => set(annotations, key, kept.clone()),
        });
    });
}

/// Works on every object of a list.
pub(crate) fn each(object: &mut Value, key: &str, work: impl Fn(&mut Value)) {
    let items = object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter(|item| item.is_object()).for_each(work);
}

/// The items of a list; none where there is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The items of a list by name; of several with one name the first.
pub(crate) fn by_name(list: &[Value]) -> HashMap<&str, &Value> {
    list.iter().rev().map(|item| (text(&item["name"]), item)).collect()
}

/// A text; empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a list or map has no entries, or is not there.
pub(crate) fn is_empty(value: &Value) -> bool {
    value.as_object().map_or_else(|| items(value).is_empty(), serde_json::Map::is_empty)
}

/// Whether two values are equal as Kubernetes compares them: what is absent equals an empty list.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    let nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.iter().all(|(key, value)| same(value, other.get(key).unwrap_or(&Value::Null)))
                && other.iter().all(|(key, value)| one.contains_key(key) || nothing(value))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => one == other || (nothing(one) && nothing(other)),
    }
}
