//! Lists that merge: by a key of their items, or as sets of single values.
//!
//! Items of the patch keep the order it gives them; items that only the server has stay where
//! they were relative to those of the patch that it had too.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{PATCH, bad_directive, merge_maps, unexpected, without_directives};
use crate::patch::{PatchError, printed};
use crate::schema::{Merge, Node};

/// Merges a patch's list into a list.
pub(super) fn merge(
    node: &Node,
    old: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    if matches!(node.patch.merge, Merge::Default | Merge::Replace) {
        return Ok(patch);
    }
    if old.is_empty() && patch.is_empty() {
        return Ok(old);
    }
    if !holds_objects(&old, &patch)? {
        let mut seen = HashSet::new();
        let all = old.iter().chain(&patch);
        let merged = all.filter(|item| seen.insert(item.to_string())).cloned().collect();
        return sorted(None, merged, &patch, &old);
    }
    let key = merge_key(node)?;
    let (old, patch) = carry_out_directives(key, old, patch)?;
    let merged = merge_items(node, key, old.clone(), &patch)?;
    sorted(Some(key), merged, &patch, &old)
}

/// Removes values from a list.
pub(super) fn delete(
    node: &Node,
    old: Vec<Value>,
    gone: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    if old.is_empty() && gone.is_empty() {
        return Ok(old);
    }
    if holds_objects(&old, &gone)? {
        merge_key(node)?;
        return merge(node, old, gone);
    }
    let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
    Ok(old.into_iter().filter(|item| !gone.contains(&item.to_string())).collect())
}

/// The list that comes of an old one and a patch's, in the order that the patch demands; `None`
/// if there is neither.
pub(super) fn in_order(
    node: &Node,
    old: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
) -> Result<Option<Vec<Value>>, PatchError> {
    let key = match &node.patch.merge {
        Merge::Key(key) => Some(key.as_ref()),
        _ => None,
    };
    follows(key, patch.as_deref().unwrap_or_default(), order)?;
    let empty = Vec::new();
    let before = old.clone().unwrap_or_default();
    let sent = patch.clone().unwrap_or_default();
    let merged = match (old, patch) {
        (None, None) => return Ok(None),
        (Some(old), None) => old,
        (None, Some(patch)) => patch.into_iter().filter_map(without_directives).collect(),
        (Some(old), Some(patch)) => merge(node, old, patch)?,
    };
    if before.is_empty() && sent.is_empty() {
        return Err(PatchError::Failed("no elements in any of the given slices".to_owned()));
    }
    let objects = holds_objects(&before, &sent)?;
    let key = key.filter(|_| objects);
    let order = if objects || key.is_none() { order } else { &empty };
    sorted(key, merged, order, &before).map(Some)
}

/// Takes the items with a `$patch` out of a patch's list, and does what they say.
fn carry_out_directives(
    key: &str,
    mut old: Vec<Value>,
    patch: Vec<Value>,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut items = Vec::with_capacity(patch.len());
    let mut gone = HashSet::new();
    let mut replace = false;
    for item in patch {
        match item.get(PATCH).map(Value::as_str) {
            None => items.push(item),
            Some(Some("delete")) => {
                gone.insert(key_of(&item, key)?.to_string());
            }
            Some(Some("replace")) => replace = true,
            Some(Some("merge")) => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Failed(text.to_owned()));
            }
            Some(_) => return Err(bad_directive(item.as_object().cloned().unwrap_or_default())),
        }
    }
    if !gone.is_empty() {
        let stays = |value: &Value| !gone.contains(&value.to_string());
        old.retain(|known| known.get(key).is_none_or(stays));
    }
    Ok(if replace { (items, Vec::new()) } else { (old, items) })
}

fn merge_items(
    node: &Node,
    key: &str,
    mut merged: Vec<Value>,
    patch: &[Value],
) -> Result<Vec<Value>, PatchError> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, item) in merged.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(value.to_string()).or_insert(place);
        }
    }
    for item in patch {
        let wanted = key_of(item, key)?.to_string();
        match places.get(&wanted) {
            Some(&place) => {
                let old = object(std::mem::take(&mut merged[place]))?;
                let new = merge_maps(node.item(), old, object(item.clone())?)?;
                merged[place] = Value::Object(new);
            }
            None => {
                places.insert(wanted, merged.len());
                merged.push(item.clone());
            }
        }
    }
    Ok(merged)
}

/// Puts the items named by `order` into that order; the others stay where they were relative to
/// them in `before`.
fn sorted(
    key: Option<&str>,
    items: Vec<Value>,
    order: &[Value],
    before: &[Value],
) -> Result<Vec<Value>, PatchError> {
    let order = Places::new(key, order)?;
    let before = Places::new(key, before)?;
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in items {
        let name = name(key, &item)?;
        match order.0.get(&name) {
            Some(&place) => named.push((place, before.0.get(&name).copied(), item)),
            None => others.push((before.0.get(&name).copied(), item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(place, _)| *place);

    let mut merged = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().map(|(_, before, item)| (before, item)).peekable();
    let mut others = others.into_iter().peekable();
    while let (Some((next, _)), Some((other, _))) = (named.peek(), others.peek()) {
        let other_first = matches!((other, next), (Some(other), Some(next)) if other < next);
        let item = if other_first { others.next() } else { named.next() };
        merged.extend(item.map(|(_, item)| item));
    }
    merged.extend(named.chain(others).map(|(_, item)| item));
    Ok(merged)
}

/// Where items are in a list, by their key or value.
struct Places(HashMap<String, usize>);

impl Places {
    fn new(key: Option<&str>, items: &[Value]) -> Result<Self, PatchError> {
        let mut places = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            places.entry(name(key, item)?).or_insert(place);
        }
        Ok(Self(places))
    }
}

fn name(key: Option<&str>, item: &Value) -> Result<String, PatchError> {
    match key {
        Some(key) => key_of(item, key).map(ToString::to_string),
        None => Ok(item.to_string()),
    }
}

/// Refuses a patch whose items come in another order than its `$setElementOrder` demands.
fn follows(key: Option<&str>, patch: &[Value], order: &[Value]) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if let Some(odd) = patch.iter().find(|item| key.is_some() && !item.is_object()) {
        return Err(unexpected("map[string]interface {}", odd));
    }
    let is_deleted =
        |item: &&Value| key.is_some() && item.get(PATCH).and_then(Value::as_str) == Some("delete");
    let sent: Vec<&Value> = patch.iter().filter(|item| !is_deleted(item)).collect();
    let mut at = 0;
    for wanted in order {
        // What another directive is about has no place in an order.
        while sent.get(at).is_some_and(|item| item.get(PATCH).is_some()) {
            at += 1;
        }
        let Some(item) = sent.get(at) else { break };
        if name(key, item)? == name(key, wanted)? {
            at += 1;
        }
    }
    if at == sent.len() {
        return Ok(());
    }
    let print = |items: &[Value]| printed(&Value::Array(items.to_vec()));
    Err(PatchError::Failed(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        print(patch),
        print(order)
    )))
}

/// Whether two lists hold objects; all items must be of one type.
fn holds_objects(old: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut items = old.iter().chain(patch);
    let first = items.next().unwrap_or(&Value::Null);
    if first.is_array() {
        return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
    }
    let same = std::mem::discriminant(first);
    if first.is_null() || !items.all(|item| std::mem::discriminant(item) == same) {
        let lists = Value::Array(vec![old.into(), patch.into()]);
        let text = format!("list element types are not identical: {}", printed(&lists));
        return Err(PatchError::Failed(text));
    }
    Ok(first.is_object())
}

fn merge_key(node: &Node) -> Result<&str, PatchError> {
    match &node.patch.merge {
        Merge::Key(key) => Ok(key),
        _ => {
            let text = "cannot merge lists without merge key for struct";
            Err(PatchError::Failed(text.to_owned()))
        }
    }
}

fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    if !item.is_object() {
        return Err(unexpected("map[string]interface {}", item));
    }
    item.get(key).ok_or_else(|| {
        let text = format!("map: {} does not contain declared merge key: {key}", printed(item));
        PatchError::Failed(text)
    })
}

fn object(item: Value) -> Result<Map<String, Value>, PatchError> {
    match item {
        Value::Object(map) => Ok(map),
        other => Err(unexpected("map[string]interface {}", &other)),
    }
}
