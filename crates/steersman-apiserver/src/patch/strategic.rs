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
//! Which lists merge, and by which key, is the schema's [`Merge`] rule.

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::{Merge, Node};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into an object.
pub(super) fn apply(node: &Node, object: &Value, patch: Value) -> Result<Value, PatchError> {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            merge_maps(node, object.clone(), patch).map(Value::Object)
        }
        (_, patch) => Ok(patch),
    }
}

fn merge_maps(
    node: &Node,
    mut object: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    if let Some(directive) = patch.remove(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            Some("merge") => merge_maps(node, object, patch),
            _ => Err(bad_directive(&directive)),
        };
    }
    if let Some(keys) = patch.remove(RETAIN_KEYS) {
        retain_keys(&mut object, &patch, &keys)?;
    }
    let orders = take_prefixed(&mut patch, ELEMENT_ORDER)?;
    let deletions = take_prefixed(&mut patch, DELETE_FROM)?;
    let before: Vec<(String, Vec<Value>, Value)> = orders
        .into_iter()
        .map(|(key, order)| {
            let old = object.get(&key).cloned().unwrap_or_default();
            (key, order, old)
        })
        .collect();
    for (key, value) in patch {
        merge_field(node.child(&key), &mut object, key, value)?;
    }
    for (key, values) in deletions {
        if let Some(Value::Array(items)) = object.get_mut(&key) {
            items.retain(|item| !values.contains(item));
        }
    }
    for (key, order, old) in before {
        if let Some(Value::Array(items)) = object.get_mut(&key) {
            let old = old.as_array().map(Vec::as_slice).unwrap_or_default();
            *items = reorder(&node.child(&key).patch.merge, items, &order, old);
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
        (Some(Value::Object(old)), Value::Object(patch)) if node.patch.merge != Merge::Replace => {
            Value::Object(merge_maps(node, old, patch)?)
        }
        (Some(Value::Array(old)), Value::Array(patch)) => {
            Value::Array(merge_lists(node, old, patch)?)
        }
        (_, value) => plain(value),
    };
    object.insert(key, merged);
    Ok(())
}

fn merge_lists(node: &Node, old: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, PatchError> {
    let merge = &node.patch.merge;
    match merge {
        Merge::Default | Merge::Replace => Ok(patch.into_iter().map(plain).collect()),
        Merge::Set => {
            let mut merged = old.clone();
            for item in &patch {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            Ok(reorder(merge, &merged, &patch, &old))
        }
        Merge::Key(key) => merge_by_key(node, key, old, patch),
    }
}

fn merge_by_key(
    node: &Node,
    key: &str,
    mut old: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    let before = old.clone();
    let mut items = Vec::new();
    let mut replace = false;
    for item in patch {
        match item.get(PATCH).map(Value::as_str) {
            None => items.push(item),
            Some(Some("delete")) => {
                let gone = key_of(&item, key)?;
                old.retain(|known| known.get(key) != Some(gone));
            }
            Some(Some("replace")) => replace = true,
            Some(_) => return Err(bad_directive(&item[PATCH])),
        }
    }
    if replace {
        return Ok(items.into_iter().map(plain).collect());
    }
    for item in &items {
        let wanted = key_of(item, key)?;
        match old.iter_mut().find(|known| known.get(key) == Some(wanted)) {
            Some(known) => *known = apply(node.item(), known, item.clone())?,
            None => old.push(plain(item.clone())),
        }
    }
    Ok(reorder(&node.patch.merge, &old, &items, &before))
}

fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    item.get(key).ok_or_else(|| {
        PatchError::Unprocessable(format!("map: {item} does not contain declared merge key: {key}"))
    })
}

/// Puts the items named by `order` into that order; the others stay where they were relative to
/// them in `before`.
fn reorder(merge: &Merge, items: &[Value], order: &[Value], before: &[Value]) -> Vec<Value> {
    let same = |a: &Value, b: &Value| match merge {
        Merge::Key(key) => a.get(key.as_ref()) == b.get(key.as_ref()),
        _ => a == b,
    };
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut ordered, mut others): (Vec<Value>, Vec<Value>) =
        items.iter().cloned().partition(|item| place(order, item).is_some());
    ordered.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(before, item));

    let mut merged = Vec::with_capacity(items.len());
    let (mut ordered, mut others) = (ordered.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(next), Some(other)) = (ordered.peek(), others.peek()) {
        let other_first = match (place(before, other), place(before, next)) {
            (Some(other), Some(next)) => other < next,
            _ => false,
        };
        merged.extend(if other_first { others.next() } else { ordered.next() });
    }
    merged.extend(ordered);
    merged.extend(others);
    merged
}

fn retain_keys(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    keys: &Value,
) -> Result<(), PatchError> {
    let named =
        |key: &str| keys.as_array().is_some_and(|keys| keys.iter().any(|named| named == key));
    let is_directive = |key: &String| key.starts_with('$');
    let stray =
        patch.iter().any(|(key, value)| !is_directive(key) && !value.is_null() && !named(key));
    if !keys.is_array() || stray {
        return Err(PatchError::Malformed(
            "$retainKeys directive in the patch is invalid".to_owned(),
        ));
    }
    object.retain(|key, _| named(key));
    Ok(())
}

/// Takes the directives with that prefix out of the patch, by the field that they are about.
fn take_prefixed(
    patch: &mut Map<String, Value>,
    prefix: &str,
) -> Result<Vec<(String, Vec<Value>)>, PatchError> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
    let mut taken = Vec::new();
    for key in keys {
        let field = key[prefix.len()..].to_owned();
        match patch.remove(&key) {
            Some(Value::Array(values)) => taken.push((field, values)),
            _ => {
                let text =
                    format!("invalid patch format of {} directive", prefix.trim_end_matches('/'));
                return Err(PatchError::Malformed(text));
            }
        }
    }
    Ok(taken)
}

/// A patch value that has nothing to merge into: without nulls and directives.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept =
                map.into_iter().filter(|(key, value)| !value.is_null() && !is_directive(key));
            Value::Object(kept.map(|(key, value)| (key, plain(value))).collect())
        }
        Value::Array(items) => {
            let deleted =
                |item: &Value| item.get(PATCH).is_some_and(|directive| directive == "delete");
            Value::Array(items.into_iter().filter(|item| !deleted(item)).map(plain).collect())
        }
        scalar => scalar,
    }
}

fn is_directive(key: &str) -> bool {
    key == PATCH
        || key == RETAIN_KEYS
        || key.starts_with(ELEMENT_ORDER)
        || key.starts_with(DELETE_FROM)
}

fn bad_directive(directive: &Value) -> PatchError {
    PatchError::Unprocessable(format!("unknown patch type [{directive}] found"))
}
