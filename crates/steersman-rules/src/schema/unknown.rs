//! Fields that a schema does not know: found for field validation, removed by pruning.

use serde_json::Value;

use super::node::{Node, Shape};
use super::way::Way;

/// How many findings of one body are kept; more help nobody.
pub const FINDINGS_MAX: usize = 100;

/// Removes unknown fields.
pub(super) fn prune(node: &Node, value: &mut Value) {
    if node.knows_nothing() {
        return;
    }
    match value {
        Value::Object(map) => {
            if node.is_closed() {
                map.retain(|key, _| node.field(key).is_some());
            }
            for (key, value) in map {
                if node.is_bare(key) { empty(value) } else { prune(node.child(key), value) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prune(node.item(), item)),
        _ => {}
    }
}

/// Removes all fields of the objects in a value.
fn empty(value: &mut Value) {
    match value {
        Value::Object(map) => map.clear(),
        Value::Array(items) => items.iter_mut().for_each(empty),
        _ => {}
    }
}

/// Adds the paths of unknown fields, such as `spec.template.spec.containers[0].foo`, until there are
/// as many as anybody is told.
pub(super) fn find(node: &Node, value: &Value, way: &Way<'_>, found: &mut Vec<String>) {
    // What a decoder of its own does not know, it drops without a word.
    if node.knows_nothing() || matches!(node.shape, Shape::Part(_)) {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let below = way.field(key);
                if node.is_bare(key) {
                    find_all(value, &below, found);
                } else if !(node.is_closed() && node.field(key).is_none()) {
                    find(node.child(key), value, &below, found);
                } else if found.len() < FINDINGS_MAX {
                    found.push(below.text());
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find(node.item(), item, &way.index(index), found);
            }
        }
        _ => {}
    }
}

/// Adds the paths of all fields of the objects in a value.
fn find_all(value: &Value, way: &Way<'_>, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let left = FINDINGS_MAX.saturating_sub(found.len());
            found.extend(map.keys().take(left).map(|key| way.field(key).text()));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_all(item, &way.index(index), found);
            }
        }
        _ => {}
    }
}

/// Whether a value has fields that the schema does not know, but for those in the metadata of resources.
pub(super) fn any(node: &Node, value: &Value) -> bool {
    match value {
        _ if node.knows_nothing() => false,
        Value::Object(map) => map.iter().any(|(key, value)| {
            let below = node.child(key);
            let is_metadata = matches!(below.shape, Shape::Named(_));
            let is_unknown = node.is_closed() && node.field(key).is_none();
            let has_unknown = || match node.is_bare(key) {
                true => has_fields(value),
                false => any(below, value),
            };
            !is_metadata && (is_unknown || has_unknown())
        }),
        Value::Array(items) => items.iter().any(|item| any(node.item(), item)),
        _ => false,
    }
}

/// Whether any of the objects in a value has a field.
fn has_fields(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => items.iter().any(has_fields),
        _ => false,
    }
}
