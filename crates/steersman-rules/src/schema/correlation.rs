//! Which items of a list replace which, and what has not changed: items are known again by their
//! keys, fields only if the schema speaks of them.

use std::collections::HashMap;

use serde_json::Value;

use super::node::{ListKind, Node, Shape, Text};

/// The items of a list that was replaced, by their keys.
pub(super) struct Items<'a, K> {
    keys: Option<&'a [K]>,
    by_keys: HashMap<String, &'a Value>,
}

impl<'a, K: AsRef<str>> Items<'a, K> {
    /// Items that are known again by keys, or not at all. Of those with the same keys, the first is.
    pub(super) fn new(keys: Option<&'a [K]>, items: &'a [Value]) -> Self {
        let mut by_keys = HashMap::new();
        for item in items {
            if let Some(identity) = keys.and_then(|keys| identity(keys, item)) {
                by_keys.entry(identity).or_insert(item);
            }
        }
        Self { keys, by_keys }
    }

    /// The item that another one replaces.
    pub(super) fn like(&self, item: &Value) -> Option<&'a Value> {
        let keys = self.keys.filter(|_| !self.by_keys.is_empty())?;
        self.by_keys.get(&identity(keys, item)?).copied()
    }
}

/// What an item is known by; nothing if it lacks a key, or has one that is no single value.
fn identity<K: AsRef<str>>(keys: &[K], item: &Value) -> Option<String> {
    let is_single = |value: &&Value| !(value.is_null() || value.is_object() || value.is_array());
    let values = keys.iter().map(|key| item.get(key.as_ref()).filter(is_single));
    let values: Option<Vec<&Value>> = values.collect();
    serde_json::to_string(&values?).ok()
}

/// By which keys the items of a list are known again, if they are.
pub(super) fn keys_of(node: &Node) -> Option<&[Text]> {
    match &node.shape {
        Shape::List(list) => match &list.kind {
            ListKind::Map(keys) => Some(keys),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value is the one that it replaces. Objects with fields of which the schema does not speak
/// never are, so an object with metadata hardly is.
pub(super) fn is_unchanged(node: &Node, new: &Value, old: &Value) -> bool {
    let node = node.said();
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let is_same = |(key, new): (&String, &Value)| {
                let below = node.child(key);
                let old = old.get(key).filter(|_| below.is_spoken_of());
                old.is_some_and(|old| is_unchanged(below, new, old))
            };
            new.len() == old.len() && new.iter().all(is_same)
        }
        (Value::Array(new), Value::Array(old)) if new.len() == old.len() => match keys_of(node) {
            Some(keys) => {
                let before = Items::new(Some(keys), old);
                let is_same = |new: &Value| {
                    before.like(new).is_some_and(|old| is_unchanged(node.item(), new, old))
                };
                new.iter().all(is_same)
            }
            None => new == old,
        },
        _ => new == old,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_unchanged;
    use crate::schema::structural_node;

    #[test]
    fn what_is_unchanged_is_known_by_the_schema() {
        let map = json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
            "items": {"type": "object", "properties": {
                "n": {"type": "string"}, "v": {"type": "integer"},
            }},
        });
        let open = json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": {"type": "integer"}},
        });
        let resource = json!({
            "type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"kind": {"type": "string"}, "spec": {"type": "object"}},
        });
        let item = |n: &str, v: u32| json!({"n": n, "v": v});
        let of = |schema: &Value, new: Value, old: Value| {
            is_unchanged(&structural_node(schema), &new, &old)
        };
        assert!(of(&json!({"type": "string"}), json!("a"), json!("a")));
        assert!(!of(&json!({"type": "string"}), json!("a"), json!("b")));
        let turned = json!([item("b", 2), item("a", 1)]);
        assert!(of(&map, json!([item("a", 1), item("b", 2)]), turned.clone()));
        assert!(!of(&map, json!([item("a", 1), item("b", 3)]), turned.clone()));
        assert!(!of(&map, json!([item("a", 1)]), turned));
        assert!(of(&open, json!({"a": 1}), json!({"a": 1})));
        assert!(!of(&open, json!({"a": 1, "b": 1}), json!({"a": 1, "b": 1})), "nobody knows of b");
        assert!(of(&resource, json!({"kind": "A"}), json!({"kind": "A"})));
        let with_metadata = json!({"kind": "A", "metadata": {"name": "a"}});
        assert!(!of(&resource, with_metadata.clone(), with_metadata));
    }
}
