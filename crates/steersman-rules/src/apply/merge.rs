//! Merging documents by their schema.
//!
//! [`merge`] lays an applied configuration over the live object; [`remove`] takes paths out;
//! [`prune`](super::versions::prune) combines both to forget what a manager applied before and does not any more.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::path::Step;
use super::typed::{paths_of, step};
use crate::schema::{Node, Relation, Unset};

/// Gives the live object everything that the configuration sets. Leaves are replaced, objects
/// merge field by field, list items by their keys, in the configuration's order where it has one.
pub(super) fn merge(node: &Node, live: &mut Value, applied: &Value) {
    match (node.relation(live), node.relation(applied)) {
        (Relation::Granular, Relation::Granular) => {
            let Value::Object(live) = live else { return };
            for (key, value) in applied.as_object().into_iter().flatten() {
                merge_field(node.child(key), live, key, value);
            }
        }
        (Relation::Set | Relation::Keyed(..), relation @ (Relation::Set | Relation::Keyed(..))) => {
            let (Value::Array(live), Value::Array(applied)) = (live, applied) else { return };
            *live = merge_lists(node, relation, mem::take(live), applied);
        }
        // A null claims a container without emptying it.
        (Relation::Granular | Relation::Set | Relation::Keyed(..), Relation::Leaf)
            if applied.is_null() && !is_empty(live) => {}
        _ => *live = applied.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Whether a document has a null anywhere.
pub(super) fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(has_nulls),
        Value::Array(items) => items.iter().any(has_nulls),
        _ => false,
    }
}

/// Drops the nulls that mean "not set". While objects are compared they stand for what was
/// there.
pub(super) fn drop_nulls(node: &Node, value: &mut Value) {
    match (node.relation(value), value) {
        (Relation::Granular, Value::Object(map)) => map.retain(|key, value| {
            let child = node.child(key);
            drop_nulls(child, value);
            let stays = || node.field(key).is_some_and(|field| field.unset == Unset::Null);
            !value.is_null() || child.is_nullable() || stays()
        }),
        (Relation::Set | Relation::Keyed(..), Value::Array(items)) => {
            items.iter_mut().for_each(|item| drop_nulls(node.item(), item));
            items.retain(|item| !item.is_null());
        }
        _ => {}
    }
}

fn merge_field(node: &Node, live: &mut Map<String, Value>, key: &str, applied: &Value) {
    match live.get_mut(key) {
        Some(live) => merge(node, live, applied),
        None => {
            live.insert(key.to_owned(), fresh(node, applied));
        }
    }
}

/// A new value, with the lists in it merged as anywhere else.
fn fresh(node: &Node, applied: &Value) -> Value {
    let mut value = match applied {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    };
    merge(node, &mut value, applied);
    value
}

/// The live items that are still to be placed, and who is among them.
struct Live {
    /// An item that was merged into the list is gone from here.
    items: Vec<(Step, Option<Value>)>,
    /// Where the item of a step is; nowhere if there are duplicates, which are not merged into.
    places: BTreeMap<Step, Option<usize>>,
}

impl Live {
    fn new(relation: Relation<'_>, items: Vec<Value>) -> Self {
        let mut live = Self { items: Vec::with_capacity(items.len()), places: BTreeMap::new() };
        for (index, item) in items.into_iter().enumerate() {
            // What has no key is nobody's, and stays.
            let step = step(relation, &item).unwrap_or(Step::Index(index as u64));
            let place = live.places.entry(step.clone());
            place.and_modify(|place| *place = None).or_insert(Some(index));
            live.items.push((step, Some(item)));
        }
        live
    }

    fn take(&mut self, step: &Step) -> Option<Value> {
        let place = (*self.places.get(step)?)?;
        self.items[place].1.take()
    }
}

/// Items that only the live list has stay in front of the next item that both have; items of the
/// configuration keep the order it gives them.
fn merge_lists(
    node: &Node,
    relation: Relation<'_>,
    live: Vec<Value>,
    applied: &[Value],
) -> Vec<Value> {
    let mut live = Live::new(relation, live);
    let applied: Vec<(Step, &Value)> = applied
        .iter()
        .filter_map(|item| step(relation, item).ok().map(|step| (step, item)))
        .collect();
    let is_applied: BTreeSet<&Step> = applied.iter().map(|(step, _)| step).collect();
    let mut shared =
        applied.iter().map(|(step, _)| step).filter(|step| live.places.contains_key(step));
    let shared: Vec<&Step> = shared.by_ref().collect();
    let mut shared = shared.into_iter().peekable();
    let mut out = Vec::with_capacity(live.items.len().max(applied.len()));
    let mut next_live = 0;
    for (step, item) in &applied {
        let next_shared = shared.peek().copied();
        while let Some((known, item)) = live.items.get_mut(next_live) {
            if Some(&*known) == next_shared {
                break;
            }
            if !is_applied.contains(known) {
                out.extend(item.take());
            }
            next_live += 1;
        }
        if Some(step) == next_shared {
            shared.next();
        }
        out.push(match live.take(step) {
            Some(mut old) => {
                merge(node.item(), &mut old, item);
                old
            }
            None => fresh(node.item(), item),
        });
    }
    let rest = live.items.drain(next_live.min(live.items.len())..);
    out.extend(rest.filter(|(step, _)| !is_applied.contains(step)).filter_map(|(_, item)| item));
    out
}

/// Takes the paths of a set out of a value. Containers that end up empty become null, see
/// [`drop_nulls`].
pub(super) fn remove(node: &Node, value: &mut Value, paths: &FieldSet) {
    let empty = match (node.relation(value), &mut *value) {
        (Relation::Granular, Value::Object(map)) => {
            map.retain(|key, value| {
                let step = Step::Field(key.clone());
                keeps(node.child(key), value, &step, paths)
            });
            map.is_empty()
        }
        (relation @ (Relation::Set | Relation::Keyed(..)), Value::Array(items)) => {
            items.retain_mut(|item| match step(relation, item) {
                Ok(step) => keeps(node.item(), item, &step, paths),
                Err(_) => true,
            });
            items.is_empty()
        }
        // What has no parts goes as a whole or not at all.
        (_, Value::Object(_) | Value::Array(_)) => true,
        _ => false,
    };
    if empty {
        *value = Value::Null;
    }
}

fn keeps(node: &Node, value: &mut Value, step: &Step, paths: &FieldSet) -> bool {
    match paths.get(step) {
        None => true,
        Some(entry) if entry.member => false,
        Some(entry) => {
            remove(node, value, &entry.below);
            true
        }
    }
}

/// What is left of a merged object when what a manager applied last time (`last`) and nobody owns
/// any more is taken out.
///
/// Removing a struct would take along what others have in it, so the removal is done in three
/// rounds: without anything of `last` (here); with what is owned put back ([`put_back`]); and with
/// what was there but never belonged to `last` put back ([`without_dangling`]).
pub(super) fn without(node: &Node, merged: &Value, paths: &FieldSet) -> Value {
    let mut rest = merged.clone();
    remove(node, &mut rest, paths);
    if rest.is_null() {
        rest = Value::Object(Map::new());
    }
    rest
}

/// The pruned object with what somebody owns put back.
pub(super) fn put_back(node: &Node, merged: &Value, pruned: &Value, owned: &FieldSet) -> Value {
    let kept = all(node, pruned).union(&owned.with_declared_parents(node));
    without(node, merged, &all(node, merged).difference(&kept))
}

/// The merged object without what is missing in the pruned one and was in `last`.
pub(super) fn without_dangling(
    node: &Node,
    merged: &Value,
    pruned: &Value,
    last: &FieldSet,
) -> Value {
    let gone = all(node, merged).difference(&all(node, pruned));
    without(node, merged, &gone.intersection(last))
}

fn all(node: &Node, value: &Value) -> FieldSet {
    paths_of(node, value).with_declared_parents(node)
}
