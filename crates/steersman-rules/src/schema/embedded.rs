//! Resources within custom resources (`x-kubernetes-embedded-resource`): each has a kind and a
//! version, and metadata as every object has it.

use serde_json::{Map, Value, json};

use super::decode;
use super::node::{Node, Shape};
use super::way::Way;
use crate::field::{Errors, FieldError};
use crate::names;

/// Adds the mistakes in what makes embedded resources resources.
pub(super) fn validate(node: &Node, value: &Value, way: &Way<'_>, errors: &mut Errors) {
    match (&node.shape, value) {
        (Shape::Object(object), Value::Object(map)) => {
            if object.embedded {
                of_resource(map, way, errors);
            }
            for (key, value) in map {
                if let Some(field) = object.field(key) {
                    validate(&field.node, value, &way.field(key), errors);
                }
            }
        }
        (Shape::Map(below), Value::Object(map)) => {
            map.iter().for_each(|(key, value)| validate(below, value, &way.entry(key), errors));
        }
        (Shape::List(list), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                validate(&list.item, item, &way.index(index), errors);
            }
        }
        _ => {}
    }
}

/// What cannot be read as a resource, the first of it.
pub(super) fn unreadable(node: &Node, value: &Value, way: &Way<'_>) -> Option<FieldError> {
    match (&node.shape, value) {
        (Shape::Object(object), Value::Object(map)) => {
            let own = object.embedded.then(|| unreadable_parts(node, map, way)).flatten();
            own.or_else(|| {
                map.iter().find_map(|(key, value)| {
                    unreadable(&object.field(key)?.node, value, &way.field(key))
                })
            })
        }
        (Shape::Map(below), Value::Object(map)) => {
            map.iter().find_map(|(key, value)| unreadable(below, value, &way.entry(key)))
        }
        (Shape::List(list), Value::Array(items)) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| unreadable(&list.item, item, &way.index(index)))
        }
        _ => None,
    }
}

fn unreadable_parts(node: &Node, map: &Map<String, Value>, way: &Way<'_>) -> Option<FieldError> {
    let no_text = ["apiVersion", "kind"].into_iter().find_map(|key| {
        let value = map.get(key).filter(|value| !value.is_string())?;
        Some(FieldError::invalid(way.field(key).text(), value, "must be a string"))
    });
    no_text.or_else(|| {
        let metadata = map.get("metadata")?;
        let mut mistakes = Vec::new();
        decode::check(node.child("metadata"), metadata, None, &mut mistakes);
        let why = mistakes.first()?;
        Some(FieldError::invalid(way.field("metadata").text(), metadata, why))
    })
}

fn of_resource(map: &Map<String, Value>, way: &Way<'_>, errors: &mut Errors) {
    for key in ["apiVersion", "kind"] {
        if !map.contains_key(key) {
            errors.push(FieldError::required(way.field(key).text(), ""));
        }
    }
    if let Some(version) = map.get("apiVersion") {
        errors.extend(of_version(version, &way.field("apiVersion").text()));
    }
    if let Some(kind) = map.get("kind") {
        errors.extend(of_kind(kind, &way.field("kind").text()));
    }
    if let Some(metadata) = map.get("metadata").filter(|metadata| metadata.is_object()) {
        errors.extend(of_metadata(metadata, way));
    }
}

fn of_version(version: &Value, field: &str) -> Option<FieldError> {
    let why = match version.as_str() {
        None => "must be a string".to_owned(),
        Some("") => "must not be empty".to_owned(),
        Some(text) if text.matches('/').count() > 1 => {
            format!("unexpected GroupVersion string: {text}")
        }
        Some(_) => return None,
    };
    Some(FieldError::invalid(field, version, &why))
}

fn of_kind(kind: &Value, field: &str) -> Option<FieldError> {
    let why = match kind.as_str() {
        None => "must be a string".to_owned(),
        Some("") => "must not be empty".to_owned(),
        Some(text) => {
            let complaints = names::dns1035_label(&text.to_lowercase());
            if complaints.is_empty() {
                return None;
            }
            format!("may have mixed case, but should otherwise match: {}", complaints.join(","))
        }
    };
    Some(FieldError::invalid(field, kind, &why))
}

fn of_metadata(metadata: &Value, way: &Way<'_>) -> Vec<FieldError> {
    let has = |key: &str| metadata[key].as_str().is_some_and(|text| !text.is_empty());
    let mut object = json!({"metadata": metadata});
    if !has("name") {
        // It need not have one.
        object["metadata"]["name"] = json!("fakename");
    }
    let found = names::validate_metadata_with(&object, has("namespace"), names::path_segment);
    let at = way.text();
    let told = found.into_iter().map(|error| match at.as_str() {
        "" => error,
        at => FieldError { field: format!("{at}.{}", error.field), ..error },
    });
    told.collect()
}
