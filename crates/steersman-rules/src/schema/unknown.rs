//! Fields that a schema does not know: found for field validation, removed by pruning.

use serde_json::Value;

use super::node::Node;

/// Removes unknown fields.
pub(super) fn prune(node: &Node, value: &mut Value) {
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

/// Adds the paths of unknown fields, such as `spec.template.spec.containers[0].foo`.
pub(super) fn find(node: &Node, value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let below = join(path, key);
                if node.is_closed() && node.field(key).is_none() {
                    found.push(below);
                } else {
                    find(node.child(key), value, &below, found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find(node.item(), item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// `path.key`, or `key` at the root.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
