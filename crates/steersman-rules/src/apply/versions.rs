//! Managers of the same object may speak different versions of its kind; each keeps its fields in
//! its own.
//!
//! What changed is therefore asked per version. Kinds with one version, almost all, pay nothing:
//! only a manager of another version makes the object be converted.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde_json::Value;

use super::fieldset::FieldSet;
use super::managed_fields::{Managers, Owned};
use super::merge::{put_back, without, without_dangling};
use super::typed::{Comparison, compare};
use crate::schema::{Node, Schema};

/// How an object reads in another version of its kind.
pub trait Versions: Debug {
    /// The object in a version, and that version's schema; `None` if it is not served any more.
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, Schema)>;
}

/// The versions of a kind that has one.
#[derive(Clone, Copy, Debug)]
pub struct Sole;

impl Versions for Sole {
    fn convert(&self, _: &Value, _: &str) -> Option<(Value, Schema)> {
        None
    }
}

/// The paths that a kind resets when it is written through one of its subresources: nobody owns
/// by such a write what is there or below.
pub type Resets<'a> = &'a [&'a [&'a str]];

/// What a write changes, in one version.
#[derive(Debug)]
pub(super) struct Changed {
    /// Added or modified.
    pub(super) written: FieldSet,
    pub(super) removed: FieldSet,
}

/// What a write changes, in the versions that matter.
#[derive(Debug)]
pub(super) struct Changes<'a> {
    api_version: &'a str,
    here: Changed,
    elsewhere: BTreeMap<String, Option<Changed>>,
}

/// The objects before and after a write, and the version they speak.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    pub(super) node: &'a Node,
    pub(super) api_version: &'a str,
    pub(super) versions: &'a dyn Versions,
    pub(super) resets: Resets<'a>,
}

impl Changed {
    /// What is reset is not changed, whatever was sent.
    fn new(comparison: Comparison, resets: Resets<'_>) -> Self {
        let without = |set: FieldSet| resets.iter().fold(set, |set, path| set.without(path));
        let Comparison { added, modified, removed } = comparison;
        let written = if modified.is_empty() { added } else { modified.union(&added) };
        Self { written: without(written), removed: without(removed) }
    }
}

impl<'a> Changes<'a> {
    /// Compares in the write's own version and in those of the managers.
    pub(super) fn new(write: Write<'a>, managers: &Managers) -> Self {
        let here = compare(write.node, write.old, write.new);
        let mut elsewhere = BTreeMap::new();
        for owned in managers.values() {
            let version = owned.api_version.as_str();
            if version != write.api_version && !elsewhere.contains_key(version) {
                let changed = compare_in(write, version, here.is_empty());
                elsewhere.insert(version.to_owned(), changed);
            }
        }
        Self { api_version: write.api_version, here: Changed::new(here, write.resets), elsewhere }
    }

    /// In the version of the write.
    pub(super) fn into_here(self) -> Changed {
        self.here
    }

    /// In another version; `None` if that is not served any more.
    pub(super) fn in_version(&self, api_version: &str) -> Option<&Changed> {
        if api_version == self.api_version {
            return Some(&self.here);
        }
        self.elsewhere.get(api_version)?.as_ref()
    }

    /// Others lose what this write changed or removed, and all they have in a version that is no
    /// more.
    pub(super) fn take_over(&self, managers: &mut Managers) {
        managers.retain(|_, owned| {
            let Some(changed) = self.in_version(&owned.api_version) else { return false };
            owned.fields.subtract(&changed.written);
            owned.fields.subtract(&changed.removed);
            !owned.fields.is_empty()
        });
    }
}

fn compare_in(write: Write<'_>, api_version: &str, unchanged: bool) -> Option<Changed> {
    let (new, schema) = write.versions.convert(write.new, api_version)?;
    if unchanged {
        return Some(Changed::new(Comparison::default(), write.resets));
    }
    let (old, _) = write.versions.convert(write.old, api_version)?;
    Some(Changed::new(compare(&schema.root(), &old, &new), write.resets))
}

/// Takes out of a merged object what a manager applied last time and nobody owns any more.
/// `managers` are all who own something now, this one's new configuration included.
pub(super) fn prune(write: Write<'_>, last: &Owned, managers: &[(&str, &FieldSet)]) -> Value {
    let merged = write.new;
    let here = (last.api_version == write.api_version).then(|| merged.clone());
    let (merged_then, schema) = match here {
        Some(merged) => (merged, None),
        None => match write.versions.convert(merged, &last.api_version) {
            Some((converted, schema)) => (converted, Some(schema)),
            None => return merged.clone(),
        },
    };
    let root = schema.as_ref().map(Schema::root);
    let node = root.as_deref().unwrap_or(write.node);
    let last_fields = last.fields.to_set().with_declared_parents(node);
    let mut pruned = without(node, &merged_then, &last_fields);
    for (version, owned) in by_version(managers, &last.api_version) {
        pruned = put_back_in(write, (&merged_then, &pruned), &version, (&owned, last, node));
    }
    let pruned = without_dangling(node, &merged_then, &pruned, &last_fields);
    if schema.is_none() {
        return pruned;
    }
    let back = write.versions.convert(&pruned, write.api_version);
    back.map_or_else(|| merged.clone(), |(object, _)| object)
}

/// What is owned, per version; the version that is pruned comes first.
fn by_version(managers: &[(&str, &FieldSet)], first: &str) -> Vec<(String, FieldSet)> {
    let mut all: BTreeMap<&str, Vec<FieldSet>> = BTreeMap::new();
    for (version, fields) in managers {
        all.entry(version).or_default().push((*fields).clone());
    }
    let first = all.remove_entry(first);
    let joined = |(version, sets): (&str, _)| (version.to_owned(), FieldSet::union_of(sets));
    first.into_iter().chain(all).map(joined).collect()
}

fn put_back_in(
    write: Write<'_>,
    (merged, pruned): (&Value, &Value),
    version: &str,
    (owned, last, node): (&FieldSet, &Owned, &Node),
) -> Value {
    if version == last.api_version {
        return put_back(node, merged, pruned, owned);
    }
    let in_version = |object: &Value| write.versions.convert(object, version);
    let put_back = || {
        let ((merged, schema), (pruned, _)) = (in_version(merged)?, in_version(pruned)?);
        let kept = put_back(&schema.root(), &merged, &pruned, owned);
        Some(write.versions.convert(&kept, &last.api_version)?.0)
    };
    put_back().unwrap_or_else(|| pruned.clone())
}
