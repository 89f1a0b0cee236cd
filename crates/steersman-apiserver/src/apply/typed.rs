//! Documents seen through a schema: the paths they set, and how two differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::path::Step;
use crate::schema::{Node, Relation, Shape};

/// How one object became another; no path is in more than one of the sets.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

/// The paths that a document sets: leaves, list items, map keys, and what is empty or null.
/// Structs are not owned themselves, only what is in them.
pub(super) fn paths_of(node: &Node, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    add_paths(node, value, &mut Vec::new(), &mut set);
    set
}

/// Compares two versions of an object, as Kubernetes sees them.
pub(super) fn compare(node: &Node, old: &Value, new: &Value) -> Comparison {
    if old == new {
        return Comparison::default();
    }
    let (mut old, mut new) = (old.clone(), new.clone());
    fill(node, &mut old);
    fill(node, &mut new);
    let mut comparison = Comparison::default();
    comparison.walk(node, Some(&old), Some(&new), &mut Vec::new());
    comparison
}

/// Adds the structs and lists that always exist in Kubernetes' own types, so that they are not
/// taken for something that a request added.
fn fill(node: &Node, value: &mut Value) {
    let (Shape::Named(_), Some(object), Value::Object(map)) = (&node.shape, node.object(), value)
    else {
        return;
    };
    for field in &object.fields {
        let required_list = field.required && matches!(field.node.shape, Shape::List(_));
        if !field.value && !required_list {
            continue;
        }
        let empty =
            || if field.value { Value::Object(Map::new()) } else { Value::Array(Vec::new()) };
        fill(&field.node, map.entry(field.name.as_ref()).or_insert_with(empty));
    }
}

/// The items of a set or keyed list with the steps that lead to them.
pub(super) fn steps<'v>(
    relation: Relation<'_>,
    value: &'v Value,
) -> Vec<(Result<Step, String>, &'v Value)> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let step = |item: &Value| match relation {
        Relation::Keyed(list, keys) => Step::to_keyed(list, keys, item),
        _ => Step::to_member(item),
    };
    items.iter().map(|item| (step(item), item)).collect()
}

fn add_paths(node: &Node, value: &Value, path: &mut Vec<Step>, set: &mut FieldSet) {
    match node.relation(value) {
        Relation::Leaf => set.insert(path),
        Relation::Granular => {
            for (key, value) in value.as_object().into_iter().flatten() {
                path.push(Step::Field(key.clone()));
                add_paths(node.child(key), value, path, set);
                if node.field(key).is_none() || is_empty_map(value) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        relation @ (Relation::Set | Relation::Keyed(..)) => {
            for (step, items) in groups(relation, Some(value)) {
                path.push(step);
                // Of duplicates nothing is owned but the fact that they are there.
                if let [item] = items[..] {
                    add_paths(node.item(), item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
    }
}

fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn is_empty(value: &Value) -> bool {
    is_empty_map(value) || value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// The items of a list by the step that leads to them; more than one if they are duplicates.
type Groups<'v> = BTreeMap<Step, Vec<&'v Value>>;

impl Comparison {
    fn walk(
        &mut self,
        node: &Node,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &mut Vec<Step>,
    ) {
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => self.changed(node, old, new, path),
            (None, Some(new)) => {
                self.added.insert(path);
                self.descend(node, None, Some(new), path);
            }
            (Some(old), None) => {
                self.removed.insert(path);
                self.descend(node, Some(old), None, path);
            }
            (None, None) => {}
        }
    }

    fn changed(&mut self, node: &Node, old: &Value, new: &Value, path: &mut Vec<Step>) {
        let leaf = |value: &Value| matches!(node.relation(value), Relation::Leaf);
        match (leaf(old), leaf(new)) {
            (false, false) if is_empty(old) && is_empty(new) => self.modified.insert(path),
            (false, false) => self.descend(node, Some(old), Some(new), path),
            (true, true) => self.modified.insert(path),
            // Null next to a container is an empty container; anything else changed its type.
            (true, false) => {
                if !old.is_null() || is_empty(new) {
                    self.modified.insert(path);
                }
                self.descend(node, None, Some(new), path);
            }
            (false, true) => {
                if !new.is_null() || is_empty(old) {
                    self.modified.insert(path);
                }
                self.descend(node, Some(old), None, path);
            }
        }
    }

    /// Compares what is below two values, of which at least one exists.
    fn descend(
        &mut self,
        node: &Node,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &mut Vec<Step>,
    ) {
        let Some(present) = new.or(old) else { return };
        match node.relation(present) {
            Relation::Leaf => {}
            Relation::Granular => self.descend_map(node, as_map(old), as_map(new), path),
            relation => self.descend_list(node, relation, old, new, path),
        }
    }

    fn descend_map(
        &mut self,
        node: &Node,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        path: &mut Vec<Step>,
    ) {
        let mut visit = |key: &String, old: Option<&Value>, new: Option<&Value>| {
            path.push(Step::Field(key.clone()));
            self.walk(node.child(key), old, new, path);
            path.pop();
        };
        for (key, old) in old.into_iter().flatten() {
            visit(key, Some(old), new.and_then(|new| new.get(key)));
        }
        for (key, new) in new.into_iter().flatten() {
            if !old.is_some_and(|old| old.contains_key(key)) {
                visit(key, None, Some(new));
            }
        }
    }

    fn descend_list(
        &mut self,
        node: &Node,
        relation: Relation<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &mut Vec<Step>,
    ) {
        let (old, new) = (groups(relation, old), groups(relation, new));
        let only_new = new.keys().filter(|step| !old.contains_key(step));
        for step in old.keys().chain(only_new) {
            let (old, new) = (old.get(step).map(Vec::as_slice), new.get(step).map(Vec::as_slice));
            path.push(step.clone());
            self.item(node.item(), old.unwrap_or_default(), new.unwrap_or_default(), path);
            path.pop();
        }
    }

    /// One step of a list. Duplicates are compared as a whole.
    fn item(&mut self, node: &Node, old: &[&Value], new: &[&Value], path: &mut Vec<Step>) {
        match (old.len() > 1, new.len() > 1) {
            (false, false) => self.walk(node, old.first().copied(), new.first().copied(), path),
            (true, true) if old == new => {}
            (true, true) => self.modified.insert(path),
            (true, false) => {
                self.walk(node, None, new.first().copied(), path);
                self.removed.insert(path);
            }
            (false, true) => {
                self.walk(node, old.first().copied(), None, path);
                self.added.insert(path);
            }
        }
    }
}

fn groups<'v>(relation: Relation<'_>, value: Option<&'v Value>) -> Groups<'v> {
    let mut groups = Groups::new();
    for (step, item) in value.map(|value| steps(relation, value)).into_iter().flatten() {
        if let Ok(step) = step {
            groups.entry(step).or_default().push(item);
        }
    }
    groups
}

fn as_map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}
