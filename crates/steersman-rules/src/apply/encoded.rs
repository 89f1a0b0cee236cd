//! Questions about FieldsV1 as it lies in an object, answered without decoding it.
//!
//! Most writes change a handful of fields of an object whose managers own hundreds. Only the
//! managers that are touched have to be decoded and written anew.

use serde_json::{Map, Value};

use super::fieldset::{Entry, FieldSet};
use super::path::Step;
use crate::schema::{ANY, Node, Relation, Shape};

/// Whether any path of the set is among the fields.
pub(super) fn overlaps(fields: &Value, set: &FieldSet) -> bool {
    let Value::Object(fields) = fields else { return false };
    let both = |entry: &Entry, below: &Value| {
        (entry.member && is_member(below)) || overlaps(below, &entry.below)
    };
    // An object may have thousands of managers, and a write thousands of paths.
    if fields.len() < set.entries().len() {
        return fields.iter().any(|(key, below)| {
            let step = Step::parse(key).ok().flatten();
            step.and_then(|step| set.get(&step)).is_some_and(|entry| both(entry, below))
        });
    }
    set.entries()
        .iter()
        .any(|entry| fields.get(&entry.step.encode()).is_some_and(|below| both(entry, below)))
}

/// Whether every path of the set is among the fields.
pub(super) fn covers(fields: &Value, set: &FieldSet) -> bool {
    let Value::Object(fields) = fields else { return set.is_empty() };
    fields.len() >= set.entries().len()
        && set.entries().iter().all(|entry| {
            let below = fields.get(&entry.step.encode());
            below.is_some_and(|below| {
                (!entry.member || is_member(below)) && covers(below, &entry.below)
            })
        })
}

/// Whether the fields name paths below something that merges only as a whole, as they do when a
/// definition has changed a list or map from granular to atomic.
pub(super) fn outdates(node: &Node, fields: &Value) -> bool {
    let Value::Object(fields) = fields else { return false };
    fields.iter().any(|(key, below)| {
        let child = match (key.strip_prefix("f:"), &node.shape) {
            (Some(name), _) => node.child(name),
            (None, Shape::List(list)) => &list.item,
            (None, _) => &ANY,
        };
        let inside = below.as_object().is_some_and(|below| below.keys().any(|key| key != "."));
        inside && (is_atomic(child) || outdates(child, below))
    })
}

/// Whether a value of this shape merges only as a whole. What has no schema does not.
pub(super) fn is_atomic(node: &Node) -> bool {
    let example = match node.shape {
        Shape::Object(_) | Shape::Named(_) | Shape::Map(_) => Value::Object(Map::new()),
        Shape::List(_) => Value::Array(Vec::new()),
        _ => return false,
    };
    matches!(node.relation(&example), Relation::Leaf)
}

/// A key that stands for its own path, and not only for those below it.
fn is_member(below: &Value) -> bool {
    below.as_object().is_some_and(|below| below.is_empty() || below.contains_key("."))
}
