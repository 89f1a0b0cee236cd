//! Sets of field paths: what a manager owns, and what changed between two objects.
//!
//! A set is a tree. A step is a *member* if the set has that very path, and a *child* if it has
//! paths below it; it may be both, which FieldsV1 writes with a `.`:
//!
//! ```json
//! {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}
//! ```
//! has `.metadata.labels` and `.metadata.labels.app`, but not `.metadata`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::path::Step;
use crate::schema::{Node, Shape};

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    members: BTreeSet<Step>,
    /// Never holds an empty set.
    children: BTreeMap<Step, FieldSet>,
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Adds one path; the empty path, the whole object, is not tracked.
    pub(crate) fn insert(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Whether the step itself is in the set.
    pub(crate) fn has(&self, step: &Step) -> bool {
        self.members.contains(step)
    }

    /// The paths below a step.
    pub(crate) fn below(&self, step: &Step) -> Option<&FieldSet> {
        self.children.get(step)
    }

    /// Paths in either.
    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.members.extend(other.members.iter().cloned());
        for (step, below) in &other.children {
            match self.children.entry(step.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(below.clone());
                }
                Entry::Occupied(mut entry) => {
                    let own = std::mem::take(entry.get_mut());
                    *entry.get_mut() = own.union(below);
                }
            }
        }
        self
    }

    /// Paths in both.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let both = |(step, below): (&Step, &Self)| {
            let below = below.intersection(other.children.get(step)?);
            (!below.is_empty()).then(|| (step.clone(), below))
        };
        Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: self.children.iter().filter_map(both).collect(),
        }
    }

    /// Paths here but not there. Taking away a parent does not take away what is below it.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let rest = |(step, below): (&Step, &Self)| {
            let below = match other.children.get(step) {
                Some(taken) => below.difference(taken),
                None => below.clone(),
            };
            (!below.is_empty()).then(|| (step.clone(), below))
        };
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: self.children.iter().filter_map(rest).collect(),
        }
    }

    /// The same set in which declared fields with paths below them are members too. Ownership of
    /// `.spec.replicas` then implies `.spec`, but ownership of a label does not imply its map.
    pub(crate) fn with_declared_parents(&self, node: &Node) -> Self {
        let mut all = Self { members: self.members.clone(), children: BTreeMap::new() };
        for (step, below) in &self.children {
            let child = match (step, &node.shape) {
                (Step::Field(name), _) => {
                    if node.field(name).is_some() {
                        all.members.insert(step.clone());
                    }
                    node.child(name)
                }
                (_, Shape::List(list)) => &list.item,
                _ => &crate::schema::ANY,
            };
            all.children.insert(step.clone(), below.with_declared_parents(child));
        }
        all
    }

    /// All paths, parents before children.
    pub(crate) fn paths(&self) -> Vec<Vec<Step>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    /// Reads FieldsV1.
    pub(crate) fn decode(fields: &Value) -> Result<Self, String> {
        let Value::Object(map) = fields else {
            return Err("fieldsV1 must be an object".to_owned());
        };
        let mut set = Self::default();
        for (key, below) in map.iter().filter(|(key, _)| *key != ".") {
            let step = Step::parse(key)?;
            let children = Self::decode(below)?;
            if below.get(".").is_some() || children.is_empty() {
                set.members.insert(step.clone());
            }
            if !children.is_empty() {
                set.children.insert(step, children);
            }
        }
        Ok(set)
    }

    /// Writes FieldsV1.
    pub(crate) fn encode(&self) -> Value {
        let mut map = Map::new();
        let steps: BTreeSet<&Step> = self.members.iter().chain(self.children.keys()).collect();
        for step in steps {
            let mut below = Map::new();
            if let Some(children) = self.children.get(step) {
                if self.members.contains(step) {
                    below.insert(".".to_owned(), Value::Object(Map::new()));
                }
                if let Value::Object(children) = children.encode() {
                    below.extend(children);
                }
            }
            map.insert(step.encode(), Value::Object(below));
        }
        Value::Object(map)
    }

    fn collect(&self, prefix: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
        for step in &self.members {
            let mut path = prefix.clone();
            path.push(step.clone());
            paths.push(path);
        }
        for (step, below) in &self.children {
            prefix.push(step.clone());
            below.collect(prefix, paths);
            prefix.pop();
        }
    }
}
