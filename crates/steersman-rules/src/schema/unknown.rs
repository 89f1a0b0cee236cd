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
                prune(node.child(key), value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prune(node.item(), item)),
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
                if !(node.is_closed() && node.field(key).is_none()) {
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
