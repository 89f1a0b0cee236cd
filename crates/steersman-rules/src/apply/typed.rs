//! Documents seen through a schema: the paths they set, and how two differ.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::path::Step;
use crate::schema::{Field, Node, Object, Relation, Shape};

/// How one object became another; no path is in more than one of the sets.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

/// What happened to one value, and below it.
#[derive(Default)]
struct Change {
    added: bool,
    modified: bool,
    removed: bool,
    below: Comparison,
}

/// Where a comparison is; `metadata.managedFields` itself is not compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Metadata,
    Inner,
}

/// The items of a list by the step that leads to them; more than one if they are duplicates.
type Groups<'v> = BTreeMap<Step, Vec<&'v Value>>;

static EMPTY_MAP: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));
static EMPTY_LIST: LazyLock<Value> = LazyLock::new(|| Value::Array(Vec::new()));

/// The paths that a document sets: leaves, list items, map keys, and what is empty or null.
/// Structs are not owned themselves, only what is in them.
pub(super) fn paths_of(node: &Node, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    match node.relation(value) {
        Relation::Leaf => {}
        Relation::Granular => {
            for (key, value) in value.as_object().into_iter().flatten() {
                let child = node.child(key);
                let member = node.field(key).is_none()
                    || is_empty_map(value)
                    || matches!(child.relation(value), Relation::Leaf);
                set.push(Step::Field(key.clone()), member, paths_of(child, value));
            }
        }
        relation => {
            for (step, items) in groups(relation, Some(value)) {
                // Of duplicates nothing is owned but the fact that they are there.
                let below = match items[..] {
                    [item] => paths_of(node.item(), item),
                    _ => FieldSet::default(),
                };
                set.push(step, true, below);
            }
        }
    }
    set.sort();
    set
}

/// Compares two versions of an object, as Kubernetes sees them: the structs and lists that always
/// exist in its own types are not something that a request added.
pub(super) fn compare(node: &Node, old: &Value, new: &Value) -> Comparison {
    changed(node, old, new, Level::Root).below
}

/// The items of a set or keyed list with the steps that lead to them.
pub(super) fn steps<'v>(
    relation: Relation<'_>,
    value: &'v Value,
) -> impl Iterator<Item = (Result<Step, String>, &'v Value)> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(move |item| (step(relation, item), item))
}

/// The step that leads to an item.
pub(super) fn step(relation: Relation<'_>, item: &Value) -> Result<Step, String> {
    match relation {
        Relation::Keyed(list, keys) => Step::to_keyed(list, keys, item),
        _ => Step::to_member(item),
    }
}

fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn is_empty(value: &Value) -> bool {
    is_empty_map(value) || value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

impl Comparison {
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    fn push(&mut self, step: impl Fn() -> Step, change: Change) {
        let Change { added, modified, removed, below } = change;
        if added || !below.added.is_empty() {
            self.added.push(step(), added, below.added);
        }
        if modified || !below.modified.is_empty() {
            self.modified.push(step(), modified, below.modified);
        }
        if removed || !below.removed.is_empty() {
            self.removed.push(step(), removed, below.removed);
        }
    }

    fn sort(&mut self) {
        self.added.sort();
        self.modified.sort();
        self.removed.sort();
    }
}

/// Compares two values that are not equal.
fn differing(node: &Node, old: Option<&Value>, new: Option<&Value>, level: Level) -> Change {
    let mut change = Change::default();
    match (old, new) {
        (Some(old), Some(new)) => return changed(node, old, new, level),
        (None, Some(_)) => change.added = true,
        (Some(_), None) => change.removed = true,
        (None, None) => return change,
    }
    change.below = descend(node, old, new, level);
    change
}

fn changed(node: &Node, old: &Value, new: &Value, level: Level) -> Change {
    let leaf = |value: &Value| matches!(node.relation(value), Relation::Leaf);
    // Null next to a container is an empty container; anything else changed its type.
    let (modified, below) = match (leaf(old), leaf(new)) {
        (true, true) => (!is_same(old, new), Comparison::default()),
        (false, false) if is_empty(old) && is_empty(new) => (true, Comparison::default()),
        (false, false) => (false, descend(node, Some(old), Some(new), level)),
        (true, false) => (!old.is_null() || is_empty(new), descend(node, None, Some(new), level)),
        (false, true) => (!new.is_null() || is_empty(old), descend(node, Some(old), None, level)),
    };
    Change { modified, below, ..Change::default() }
}

/// Whether two leaves say the same: numbers may be put with a fraction or without.
fn is_same(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Number(old), Value::Number(new)) if old.is_f64() || new.is_f64() => {
            old.as_f64() == new.as_f64()
        }
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is_same(old, new))
        }
        (Value::Object(old), Value::Object(new)) => {
            let same = |key: &str, old: &Value| new.get(key).is_some_and(|new| is_same(old, new));
            old.len() == new.len() && old.iter().all(|(key, old)| same(key, old))
        }
        _ => old == new,
    }
}

/// Compares what is below two values, of which at least one exists.
fn descend(node: &Node, old: Option<&Value>, new: Option<&Value>, level: Level) -> Comparison {
    let mut comparison = Comparison::default();
    let Some(present) = new.or(old) else { return comparison };
    match node.relation(present) {
        Relation::Leaf => {}
        Relation::Granular => {
            let maps = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            descend_map(node, maps, level, &mut comparison);
        }
        relation => descend_list(node, relation, (old, new), &mut comparison),
    }
    comparison.sort();
    comparison
}

/// The two sides of a comparison, as maps.
type Maps<'v> = (Option<&'v Map<String, Value>>, Option<&'v Map<String, Value>>);

fn descend_map(node: &Node, (old, new): Maps<'_>, level: Level, found: &mut Comparison) {
    let object = node.object().filter(|_| matches!(node.shape, Shape::Named(_)));
    let mut visit = |key: &str, old: Option<&Value>, new: Option<&Value>| {
        let below = match (level, key) {
            (Level::Root, "metadata") => Level::Metadata,
            (Level::Metadata, "managedFields") => return,
            _ => Level::Inner,
        };
        if old != new {
            let change = differing(node.child(key), old, new, below);
            found.push(|| Step::Field(key.to_owned()), change);
        }
    };
    let has =
        |map: Option<&Map<String, Value>>, key: &str| map.is_some_and(|map| map.contains_key(key));
    for (key, value) in old.into_iter().flatten() {
        visit(key, Some(value), existing(object, new, key));
    }
    for (key, value) in new.into_iter().flatten().filter(|(key, _)| !has(old, key)) {
        visit(key, existing(object, old, key), Some(value));
    }
    if old.is_some() != new.is_some() {
        let implied = object.into_iter().flat_map(Object::implied);
        for field in implied.filter(|field| !has(old, &field.name) && !has(new, &field.name)) {
            let always = stand_in(field);
            visit(&field.name, old.and(always), new.and(always));
        }
    }
}

/// The value of a field, or what stands for it when a type always has it.
fn existing<'v>(
    object: Option<&Object>,
    map: Option<&'v Map<String, Value>>,
    key: &str,
) -> Option<&'v Value> {
    map?.get(key).or_else(|| stand_in(object?.field(key)?))
}

/// What stands for a field that a type always has.
fn stand_in(field: &Field) -> Option<&'static Value> {
    match field.node.shape {
        _ if !field.is_implied() => None,
        _ if field.value => Some(&EMPTY_MAP),
        _ => Some(&EMPTY_LIST),
    }
}

fn descend_list(
    node: &Node,
    relation: Relation<'_>,
    (old, new): (Option<&Value>, Option<&Value>),
    found: &mut Comparison,
) {
    let old = groups(relation, old);
    let new = groups(relation, new);
    let only_new = new.keys().filter(|step| !old.contains_key(step));
    for step in old.keys().chain(only_new) {
        let old = old.get(step).map(Vec::as_slice);
        let new = new.get(step).map(Vec::as_slice);
        let change = item(node.item(), old.unwrap_or_default(), new.unwrap_or_default());
        found.push(|| step.clone(), change);
    }
}

/// One step of a list. Duplicates are compared as a whole.
fn item(node: &Node, old: &[&Value], new: &[&Value]) -> Change {
    if old == new {
        return Change::default();
    }
    let one_old = old.first().copied();
    let one_new = new.first().copied();
    match (old.len() > 1, new.len() > 1) {
        (false, false) => differing(node, one_old, one_new, Level::Inner),
        (true, true) => Change { modified: true, ..Change::default() },
        (true, false) => Change { removed: true, ..differing(node, None, one_new, Level::Inner) },
        (false, true) => Change { added: true, ..differing(node, one_old, None, Level::Inner) },
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
