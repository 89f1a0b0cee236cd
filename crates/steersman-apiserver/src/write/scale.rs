//! A Scale as a document: what it shows of an object, and what is wrong with where it shows.

use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::patch::{printed, printed_type};
use steersman_rules::resource::{Resource, ScalePaths};
use steersman_rules::selector::LabelSelector;

use crate::status::Result;

/// The object with the number of a Scale.
pub(super) fn scaled(object: &Value, paths: &ScalePaths, scale: &Value) -> Value {
    let mut object = object.clone();
    let wanted = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    metadata::set_at(&mut object, &paths.spec_replicas, wanted.into());
    object
}

/// The Scale of an object.
pub(crate) fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let number = |path: &str| metadata::at(object, path).as_i64().unwrap_or(0);
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    let selector = paths.selector.as_ref().map(|path| metadata::at(object, path));
    match selector {
        Some(Value::String(text)) => status["selector"] = text.as_str().into(),
        Some(selector @ Value::Object(_)) => {
            status["selector"] = LabelSelector::of_document(selector).to_string().into();
        }
        _ => {}
    }
    let mut spec = json!({});
    match number(&paths.spec_replicas) {
        0 => {}
        wanted => spec["replicas"] = wanted.into(),
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": spec, "status": status,
    })
}

/// The mistakes in what a custom resource says of its scale.
pub(super) fn mistakes(resource: &Resource, object: &Value, of: Of) -> Vec<FieldError> {
    let Some(paths) = resource.subresource("scale").and_then(|sub| sub.scale.as_ref()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    if of == Of::All {
        errors.extend(number_mistake(object, &paths.spec_replicas));
    }
    errors.extend(number_mistake(object, &paths.status_replicas));
    if let Some(path) = &paths.selector {
        let why = match nested(object, path) {
            Ok(None | Some(Value::String(_))) => None,
            Ok(Some(other)) => Some(not_of_type(path, other, "string")),
            Err(why) => Some(why),
        };
        let invalid =
            |why: OtherType| FieldError::invalid(format!(".{path}"), &"".into(), &why.to_string());
        errors.extend(why.map(invalid));
    }
    errors
}

/// What of a custom resource is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    All,
    Status,
}

fn number_mistake(object: &Value, path: &str) -> Option<FieldError> {
    let (number, why) = match nested(object, path) {
        Ok(None) => return None,
        Ok(Some(value)) => match value.as_i64() {
            Some(number) if number < 0 => (number, "should be a non-negative integer".to_owned()),
            Some(number) if number > i64::from(i32::MAX) => {
                (number, format!("should be less than or equal to {}", i32::MAX))
            }
            Some(_) => return None,
            None => (0, not_of_type(path, value, "int64").to_string()),
        },
        Err(why) => (0, why.to_string()),
    };
    Some(FieldError::invalid(format!(".{path}"), &number.into(), &why))
}

/// What stands at a path, if anything; or why there can be nothing.
fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, OtherType> {
    let mut here = object;
    let mut walked = 0;
    for field in path.split('.') {
        walked += field.len() + 1;
        here = match here {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(field) {
                Some(value) => value,
                None => return Ok(None),
            },
            other => {
                let path = path.get(..walked - 1).unwrap_or(path);
                return Err(not_of_type(path, other, "map[string]interface{}"));
            }
        };
    }
    Ok(Some(here).filter(|value| !value.is_null()))
}

/// What stands at a path has another type than the one that is read there; in the words of Go.
#[derive(Debug, thiserror::Error)]
#[error(".{path} accessor error: {value} is of the type {found}, expected {expected}")]
struct OtherType {
    path: String,
    value: String,
    found: &'static str,
    expected: &'static str,
}

fn not_of_type(path: &str, value: &Value, expected: &'static str) -> OtherType {
    let path = path.to_owned();
    OtherType { path, value: printed(value), found: printed_type(value), expected }
}
