//! Sets of field paths: what a manager owns, and what changed between two objects.
//!
//! A set is a tree. A step is a *member* if the set has that very path; it may have paths *below*
//! it; it may be both, which FieldsV1 writes with a `.`:
//!
//! ```json
//! {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}
//! ```
//! has `.metadata.labels` and `.metadata.labels.app`, but not `.metadata`.
//!
//! Every write of every object builds and joins such sets, so a level is one sorted vector.

use std::cmp::Ordering;
use std::mem;

use serde_json::{Map, Value};

use super::path::Step;
use crate::schema::{ANY, Node, Shape};

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// Sorted by step; each is a member or has something below, or both.
    entries: Vec<Entry>,
}

/// One step of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) step: Step,
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

#[cfg(test)]
thread_local! {
    /// How many steps unions have moved or copied, for tests that ask whether that grows as it may.
    pub(super) static MOVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The steps of this level, in order.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds a step that comes after, or merges with, those there are; see [`Self::sort`].
    pub(super) fn push(&mut self, step: Step, member: bool, below: FieldSet) {
        if member || !below.is_empty() {
            self.entries.push(Entry { step, member, below });
        }
    }

    /// Restores the order after steps were pushed as they came. No step may be there twice.
    pub(super) fn sort(&mut self) {
        if !self.entries.is_sorted_by(|a, b| a.step < b.step) {
            self.entries.sort_by(|a, b| a.step.cmp(&b.step));
        }
    }

    /// Adds one path; the empty path, the whole object, is not tracked.
    pub(crate) fn insert(&mut self, path: &[Step]) {
        let [first, rest @ ..] = path else { return };
        let at = match self.find(first) {
            Ok(at) => at,
            Err(at) => {
                let entry =
                    Entry { step: first.clone(), member: false, below: FieldSet::default() };
                self.entries.insert(at, entry);
                at
            }
        };
        let entry = &mut self.entries[at];
        if rest.is_empty() {
            entry.member = true;
        } else {
            entry.below.insert(rest);
        }
    }

    /// What the set has at a step and below it.
    pub(super) fn get(&self, step: &Step) -> Option<&Entry> {
        self.find(step).ok().map(|at| &self.entries[at])
    }

    fn find(&self, step: &Step) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.step.cmp(step))
    }

    /// Paths in either.
    pub(crate) fn union(self, other: &Self) -> Self {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self;
        }
        #[cfg(test)]
        MOVED.with(|moved| moved.set(moved.get() + self.entries.len() + other.entries.len()));
        let mut all = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let mut others = other.entries.iter().peekable();
        for mut entry in self.entries {
            while let Some(before) = others.next_if(|other| other.step < entry.step) {
                all.push(before.clone());
            }
            if let Some(same) = others.next_if(|other| other.step == entry.step) {
                entry.member |= same.member;
                entry.below = entry.below.union(&same.below);
            }
            all.push(entry);
        }
        all.extend(others.cloned());
        Self { entries: all }
    }

    /// Paths in any of many sets. Neighbours are joined first, so that none is copied more often
    /// than there are rounds.
    pub(crate) fn union_of(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let mut joined = Vec::with_capacity(sets.len().div_ceil(2));
            let mut rest = sets.into_iter();
            while let Some(one) = rest.next() {
                joined.push(match rest.next() {
                    Some(other) => one.union(&other),
                    None => one,
                });
            }
            sets = joined;
        }
        sets.pop().unwrap_or_default()
    }

    /// Paths in both.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::default();
        self.join(other, |a, b| {
            if let Some(b) = b {
                let below = a.below.intersection(&b.below);
                if (a.member && b.member) || !below.is_empty() {
                    both.push(a.step.clone(), a.member && b.member, below);
                }
            }
        });
        both
    }

    /// Paths here but not there. Taking away a parent does not take away what is below it.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut rest = Self::default();
        self.join(other, |a, b| match b {
            None => rest.entries.push(a.clone()),
            Some(b) => {
                let member = a.member && !b.member;
                let below = a.below.difference(&b.below);
                if member || !below.is_empty() {
                    rest.push(a.step.clone(), member, below);
                }
            }
        });
        rest
    }

    /// The same of a set that is not needed any more, of which most stays.
    pub(crate) fn minus(self, other: &Self) -> Self {
        let mut others = other.entries.iter().peekable();
        let mut rest = Self::default();
        for mut entry in self.entries {
            while others.next_if(|other| other.step < entry.step).is_some() {}
            if let Some(same) = others.next_if(|other| other.step == entry.step) {
                entry.member &= !same.member;
                entry.below = entry.below.minus(&same.below);
            }
            rest.push(entry.step, entry.member, entry.below);
        }
        rest
    }

    /// The set without a path, and without what is below it.
    pub(crate) fn without(mut self, path: &[&str]) -> Self {
        let [first, rest @ ..] = path else { return Self::default() };
        if let Ok(at) = self.find(&Step::Field((*first).to_owned())) {
            let entry = &mut self.entries[at];
            entry.below = mem::take(&mut entry.below).without(rest);
            entry.member &= !rest.is_empty();
            if !entry.member && entry.below.is_empty() {
                self.entries.remove(at);
            }
        }
        self
    }

    /// Visits the steps of this level, each with its counterpart in another set.
    fn join<'a>(&'a self, other: &'a Self, mut visit: impl FnMut(&'a Entry, Option<&'a Entry>)) {
        // A few steps among many are looked up.
        if self.entries.len() < other.entries.len() / 16 {
            self.entries.iter().for_each(|entry| visit(entry, other.get(&entry.step)));
            return;
        }
        let mut others = other.entries.iter().peekable();
        for entry in &self.entries {
            while others.next_if(|other| other.step < entry.step).is_some() {}
            let same = others.peek().filter(|other| other.step.cmp(&entry.step) == Ordering::Equal);
            visit(entry, same.copied());
        }
    }

    /// The same set in which declared fields with paths below them are members too. Ownership of
    /// `.spec.replicas` then implies `.spec`, but ownership of a label does not imply its map.
    pub(crate) fn with_declared_parents(&self, node: &Node) -> Self {
        let entries = self.entries.iter().map(|entry| {
            let declared = match &entry.step {
                Step::Field(name) => !entry.below.is_empty() && node.field(name).is_some(),
                _ => false,
            };
            let below = entry.below.with_declared_parents(at(node, &entry.step));
            Entry { step: entry.step.clone(), member: entry.member || declared, below }
        });
        Self { entries: entries.collect() }
    }

    /// All paths, parents before children.
    pub(crate) fn paths(&self) -> Vec<Vec<Step>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    /// Reads FieldsV1. What is below a step of an unknown kind is passed over.
    pub(crate) fn decode(fields: &Value) -> Result<Self, String> {
        let map = match fields {
            Value::Object(map) => map,
            Value::Null => return Ok(Self::default()),
            _ => return Err("fieldsV1 must be an object".to_owned()),
        };
        let mut set = Self::default();
        for (key, value) in map.iter().filter(|(key, _)| *key != ".") {
            let Some(step) = Step::parse(key)? else { continue };
            let below = Self::decode(value)?;
            let member = below.is_empty() || value.get(".").is_some();
            set.push(step, member, below);
        }
        set.sort();
        Ok(set)
    }

    /// Writes FieldsV1.
    pub(crate) fn encode(&self) -> Value {
        Value::Object(self.encode_level())
    }

    fn encode_level(&self) -> Map<String, Value> {
        let entries = self.entries.iter().map(|entry| {
            let mut below = entry.below.encode_level();
            if entry.member && !below.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (entry.step.encode(), Value::Object(below))
        });
        entries.collect()
    }

    fn collect(&self, prefix: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
        for entry in self.entries.iter().filter(|entry| entry.member) {
            let mut path = prefix.clone();
            path.push(entry.step.clone());
            paths.push(path);
        }
        for entry in self.entries.iter().filter(|entry| !entry.below.is_empty()) {
            prefix.push(entry.step.clone());
            entry.below.collect(prefix, paths);
            prefix.pop();
        }
    }
}

/// The shape that a step leads to.
pub(super) fn at<'n>(node: &'n Node, step: &Step) -> &'n Node {
    match (step, &node.shape) {
        (Step::Field(name), _) => node.child(name),
        (_, Shape::List(list)) => &list.item,
        _ => &ANY,
    }
}
