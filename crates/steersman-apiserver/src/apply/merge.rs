//! Merging documents by their schema.
//!
//! [`merge`] lays an applied configuration over the live object; [`remove`] takes paths out;
//! [`prune`] combines both to forget what a manager applied before and does not any more.

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::path::Step;
use super::typed::{paths_of, steps};
use crate::schema::{Node, Relation};

/// The live object with everything that the configuration sets. Leaves are replaced, objects merge
/// field by field, list items by their keys, in the configuration's order where it has one.
pub(super) fn merge(node: &Node, live: &Value, applied: &Value) -> Value {
    match (node.relation(live), node.relation(applied)) {
        (Relation::Granular, Relation::Granular) => {
            let mut merged = live.as_object().cloned().unwrap_or_default();
            for (key, value) in applied.as_object().into_iter().flatten() {
                let child = node.child(key);
                let value = match merged.get(key) {
                    Some(live) => merge(child, live, value),
                    None => merge(child, &empty(value), value),
                };
                if value.is_null() && !child.is_nullable() {
                    merged.remove(key);
                } else {
                    merged.insert(key.clone(), value);
                }
            }
            Value::Object(merged)
        }
        (Relation::Set | Relation::Keyed(..), relation @ (Relation::Set | Relation::Keyed(..))) => {
            Value::Array(merge_lists(node, relation, live, applied))
        }
        // A null claims the container without emptying it.
        (Relation::Granular | Relation::Set | Relation::Keyed(..), Relation::Leaf)
            if applied.is_null() =>
        {
            live.clone()
        }
        _ => applied.clone(),
    }
}

/// Items that only the live list has stay in front of the next item that both have; items of the
/// configuration keep the order it gives them.
fn merge_lists(node: &Node, relation: Relation<'_>, live: &Value, applied: &Value) -> Vec<Value> {
    let live = indexed(relation, live);
    let applied = indexed(relation, applied);
    let live_items = |step: &Step| live.iter().filter(|(known, _)| known == step).count();
    let mut shared = applied.iter().filter(|(step, _)| live_items(step) > 0).peekable();
    let mut rest = live.iter().peekable();
    let mut out = Vec::new();
    for (step, item) in &applied {
        let next_shared = shared.peek().map(|(step, _)| step);
        while let Some((known, item)) = rest.next_if(|(known, _)| Some(known) != next_shared) {
            if !applied.iter().any(|(step, _)| step == known) {
                out.push((*item).clone());
            }
        }
        if Some(step) == next_shared {
            shared.next();
            rest.next();
        }
        // Duplicates in the live list are not merged but replaced.
        let old = live.iter().find(|(known, _)| known == step && live_items(step) == 1);
        let old = old.map_or_else(|| empty(item), |(_, old)| (*old).clone());
        out.push(merge(node.item(), &old, item));
    }
    let is_applied = |step: &Step| applied.iter().any(|(known, _)| known == step);
    out.extend(rest.filter(|(known, _)| !is_applied(known)).map(|(_, item)| (*item).clone()));
    out
}

/// What a new value is merged into, so that nulls below it are treated as anywhere else.
fn empty(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    }
}

fn indexed<'v>(relation: Relation<'_>, value: &'v Value) -> Vec<(Step, &'v Value)> {
    let items = steps(relation, value).into_iter();
    items.filter_map(|(step, item)| step.ok().map(|step| (step, item))).collect()
}

/// The object without the paths of a set. Containers that end up empty go too; `None` if the whole
/// value does.
pub(super) fn remove(node: &Node, value: &Value, paths: &FieldSet) -> Option<Value> {
    match node.relation(value) {
        Relation::Leaf => Some(value.clone()),
        Relation::Granular => {
            let mut kept = Map::new();
            for (key, value) in value.as_object().into_iter().flatten() {
                let step = Step::Field(key.clone());
                if let Some(value) = remove_at(node.child(key), value, &step, paths) {
                    kept.insert(key.clone(), value);
                }
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        relation => {
            let items = steps(relation, value).into_iter();
            let kept: Vec<Value> = items
                .filter_map(|(step, item)| match step {
                    Ok(step) => remove_at(node.item(), item, &step, paths),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
    }
}

fn remove_at(node: &Node, value: &Value, step: &Step, paths: &FieldSet) -> Option<Value> {
    if paths.has(step) {
        return None;
    }
    match paths.below(step) {
        Some(below) => remove(node, value, below),
        None => Some(value.clone()),
    }
}

/// Takes out of a merged object what a manager applied last time (`last`) and nobody owns any
/// more; `owned` is what all managers own now, this one's new configuration included.
///
/// Removing a struct would take along what others have in it, so the removal is done in three
/// rounds: without anything of `last`; with what is owned put back; and with what was there but
/// never belonged to `last` put back.
pub(super) fn prune(node: &Node, merged: &Value, last: &FieldSet, owned: &FieldSet) -> Value {
    let without =
        |paths: &FieldSet| remove(node, merged, paths).unwrap_or_else(|| Value::Object(Map::new()));
    let all = paths_of(node, merged).with_declared_parents(node);
    let last = last.with_declared_parents(node);
    let left = |value: &Value| paths_of(node, value).with_declared_parents(node);

    let pruned = without(&last);
    let kept = left(&pruned).union(&owned.with_declared_parents(node));
    let pruned = without(&all.difference(&kept));
    without(&all.difference(&left(&pruned)).intersection(&last))
}
