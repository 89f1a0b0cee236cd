//! Strategic merge patch: a merge patch whose lists can be merged by key, with directives.
//!
//! | directive | where | meaning |
//! |---|---|---|
//! | `$patch: replace` | object, list item | take the patch instead of merging |
//! | `$patch: delete` | object, list item | remove the object or the item with that key |
//! | `$retainKeys: [a]` | object | drop all other fields of the original |
//! | `$setElementOrder/F: […]` | beside list F | the order of F's items |
//! | `$deleteFromPrimitiveList/F: […]` | beside list F | remove these values from F |
//!
//! Which lists merge, and by which key, is the schema's [`Merge`] rule; [`list`] merges them.

mod list;

use std::collections::HashSet;

use serde_json::{Map, Value};
use steersman_values::quoted;

use super::printed::printed_as_text;
use super::{PatchError, printed, printed_type};
use crate::schema::{ANY, Merge, Node, Shape};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";

/// Merges a patch into an object.
pub(super) fn apply(
    node: &Node,
    object: &Value,
    patch: Map<String, Value>,
) -> Result<Value, PatchError> {
    let object = object.as_object().cloned().unwrap_or_default();
    merge_maps(node, object, patch).map(Value::Object)
}

fn merge_maps(
    node: &Node,
    mut object: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    // Of what Go reads with a decoder of its own no rules are known.
    let node = if matches!(node.shape, Shape::Part(_)) { &ANY } else { node };
    match patch.get(PATCH).map(Value::as_str) {
        None => {}
        Some(Some("replace")) => {
            patch.remove(PATCH);
            return Ok(patch);
        }
        Some(Some("delete")) => return Ok(Map::new()),
        Some(_) => return Err(bad_directive(patch)),
    }
    if let Some(keys) = patch.remove(RETAIN_KEYS) {
        retain_keys(&mut object, &patch, &keys)?;
    }
    order_lists(node, &mut object, &mut patch)?;
    for (key, value) in patch {
        if key.starts_with(DELETE_FROM) {
            delete_from(node, &mut object, &key, value)?;
        } else {
            merge_field(node.child(&key), &mut object, key, value)?;
        }
    }
    Ok(object)
}

fn merge_field(
    node: &Node,
    object: &mut Map<String, Value>,
    key: String,
    value: Value,
) -> Result<(), PatchError> {
    if value.is_null() {
        object.remove(&key);
        return Ok(());
    }
    let merged = match (object.remove(&key), value) {
        (Some(Value::Object(_)), Value::Object(patch)) if node.patch.merge == Merge::Replace => {
            Some(Value::Object(patch))
        }
        (Some(Value::Object(old)), Value::Object(patch)) => {
            Some(Value::Object(merge_maps(node, old, patch)?))
        }
        (Some(Value::Array(old)), Value::Array(patch)) => {
            Some(Value::Array(list::merge(node, old, patch)?))
        }
        (_, value) => without_directives(without_nulls(value)),
    };
    if let Some(merged) = merged {
        object.insert(key, merged);
    }
    Ok(())
}

/// Carries out every `$setElementOrder`: merges the list beside it, if there is one, and sorts.
fn order_lists(
    node: &Node,
    object: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), PatchError> {
    let keys: Vec<String> =
        patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for key in keys {
        let order = list_of(patch.remove(&key).unwrap_or_default())?;
        let field = about(&key, ELEMENT_ORDER)
            .ok_or_else(|| malformed("invalid patch format of setElementOrder list"))?;
        let old = object.get(field).cloned().map(list_of).transpose()?;
        let new = patch.remove(field).map(list_of).transpose()?;
        if let Some(list) = list::in_order(known_field(node, field)?, old, new, &order)? {
            object.insert(field.to_owned(), Value::Array(list));
        }
    }
    Ok(())
}

/// The field of a struct, which an order must be about.
fn known_field<'n>(node: &'n Node, field: &str) -> Result<&'n Node, PatchError> {
    match node.object() {
        Some(object) if node.field(field).is_none() => {
            let name = object.name.rsplit('.').next().unwrap_or_default();
            let field = quoted(field);
            let why =
                format!("unable to find api field in struct {name} for the json field {field}");
            Err(PatchError::Failed(why))
        }
        _ => Ok(node.child(field)),
    }
}

fn delete_from(
    node: &Node,
    object: &mut Map<String, Value>,
    key: &str,
    gone: Value,
) -> Result<(), PatchError> {
    let field = about(key, DELETE_FROM)
        .ok_or_else(|| malformed("invalid patch format of primitive list"))?;
    if gone.is_null() {
        object.remove(field);
    }
    if let (Some(Value::Array(items)), Value::Array(gone)) = (object.get_mut(field), gone) {
        let old = std::mem::take(items);
        *items = list::delete(node.child(field), old, gone)?;
    }
    Ok(())
}

fn retain_keys(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    keys: &Value,
) -> Result<(), PatchError> {
    let invalid = || malformed("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(invalid)?;
    let names: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let named = |key: &str| names.contains(key);
    let is_about_list = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !is_about_list(key) && !named(key)) {
        return Err(invalid());
    }
    object.retain(|key, _| named(key));
    Ok(())
}

/// The field that a directive beside it is about.
fn about<'k>(key: &'k str, directive: &str) -> Option<&'k str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

fn list_of(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(unexpected("[]interface {}", &other)),
    }
}

/// A value without fields that are null; it has nothing that they could remove.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

/// A value without the objects that carry a `$patch`: there is nothing to delete or replace.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) => {
            if map.contains_key(PATCH) {
                return None;
            }
            let kept =
                map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(without_directives).collect()))
        }
        scalar => Some(scalar),
    }
}

fn bad_directive(map: Map<String, Value>) -> PatchError {
    let directive = printed_as_text(map.get(PATCH).unwrap_or(&Value::Null));
    let map = printed(&Value::Object(map));
    PatchError::Failed(format!("unknown patch type: {directive} in map: {map}"))
}

fn malformed(text: &str) -> PatchError {
    PatchError::Malformed(text.to_owned())
}

fn unexpected(expected: &str, found: &Value) -> PatchError {
    let found =
        if found.is_null() { printed_as_text(found) } else { printed_type(found).to_owned() };
    PatchError::Failed(format!("expected a {expected}, but received a {found}"))
}
