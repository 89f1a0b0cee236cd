//! Defaults that custom schemas state.

use serde_json::Value;

use super::node::{Node, Shape};

/// Fills in defaults, outermost first, so that a defaulted object gets its own defaults too. Nulls
/// where null is not a value count as left out.
pub(super) fn apply(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| !value.is_null() || keeps_null(node, key));
            for field in node.object().map(|object| &object.fields).into_iter().flatten() {
                let default = field.node.rules.as_ref().and_then(|rules| rules.default.as_ref());
                if let Some(default) = default.filter(|_| !map.contains_key(field.name.as_ref())) {
                    map.insert(field.name.to_string(), default.clone());
                }
            }
            for (key, value) in map {
                apply(node.child(key), value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| apply(node.item(), item)),
        _ => {}
    }
}

/// Null stays where it is allowed, and where no schema speaks.
fn keeps_null(node: &Node, key: &str) -> bool {
    let child = node.child(key);
    child.is_nullable() || matches!(node.shape, Shape::Any | Shape::Raw)
}
