//! Secondary indexes of a cache: by owner, and by names the author chooses.
//!
//! The author's functions ([`Indexers`]) run before the cache is locked; under the lock only
//! the values they gave are filed ([`Indexes`]).

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::object::ObjectKey;

/// Gives the values under which an object is found.
pub(super) type IndexFn<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// The values of one object, by index.
pub(super) type IndexValues = Vec<(&'static str, Vec<String>)>;

/// The author's index functions.
pub(super) struct Indexers<K>(Vec<(&'static str, IndexFn<K>)>);

impl<K> Default for Indexers<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K> Indexers<K> {
    /// Adds a function; false if there is one of that name already.
    pub(super) fn add(&mut self, name: &'static str, values: IndexFn<K>) -> bool {
        let new = self.0.iter().all(|(existing, _)| *existing != name);
        if new {
            self.0.push((name, values));
        }
        new
    }

    /// The values of an object in all indexes.
    pub(super) fn values(&self, object: &K) -> IndexValues {
        self.0.iter().map(|(name, f)| (*name, values_of(name, f, object))).collect()
    }
}

/// What an index function gives; one that panics gives nothing.
pub(super) fn values_of<K>(name: &str, values: &IndexFn<K>, object: &K) -> Vec<String> {
    catch_unwind(AssertUnwindSafe(|| values(object))).unwrap_or_else(|_| {
        tracing::error!(index = name, "an index function panicked; the object is not found by it");
        Vec::new()
    })
}

/// Where objects are found by owner and by index value.
#[derive(Default)]
pub(super) struct Indexes {
    owners: Postings,
    named: HashMap<&'static str, Postings>,
}

/// Which keys are found under a value. Values without keys are removed, so that an index
/// does not outgrow what it indexes.
#[derive(Default)]
struct Postings(HashMap<Box<str>, BTreeSet<ObjectKey>>);

impl Postings {
    fn insert(&mut self, value: &str, key: &ObjectKey) {
        if let Some(keys) = self.0.get_mut(value) {
            keys.insert(key.clone());
        } else {
            self.0.insert(value.into(), BTreeSet::from([key.clone()]));
        }
    }

    fn remove(&mut self, value: &str, key: &ObjectKey) {
        if let Some(keys) = self.0.get_mut(value) {
            keys.remove(key);
            if keys.is_empty() {
                self.0.remove(value);
            }
        }
    }

    fn keys(&self, value: &str) -> impl Iterator<Item = &ObjectKey> + use<'_> {
        self.0.get(value).into_iter().flatten()
    }
}

impl Indexes {
    pub(super) fn insert(&mut self, key: &ObjectKey, meta: &ObjectMeta, values: &IndexValues) {
        for uid in owner_uids(meta) {
            self.owners.insert(uid, key);
        }
        for (name, values) in values {
            self.insert_named(name, key, values);
        }
    }

    pub(super) fn insert_named(&mut self, name: &'static str, key: &ObjectKey, values: &[String]) {
        let postings = self.named.entry(name).or_default();
        for value in values {
            postings.insert(value, key);
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey, meta: &ObjectMeta, values: &IndexValues) {
        for uid in owner_uids(meta) {
            self.owners.remove(uid, key);
        }
        for (name, values) in values {
            if let Some(postings) = self.named.get_mut(name) {
                values.iter().for_each(|value| postings.remove(value, key));
            }
        }
    }

    pub(super) fn owner(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> + use<'_> {
        self.owners.keys(uid)
    }

    pub(super) fn named(
        &self,
        name: &str,
        value: &str,
    ) -> impl Iterator<Item = &ObjectKey> + use<'_> {
        let keys = self.named.get(name).and_then(|postings| postings.0.get(value));
        keys.into_iter().flatten()
    }
}

fn owner_uids(meta: &ObjectMeta) -> impl Iterator<Item = &str> {
    meta.owner_references.iter().flatten().map(|owner| owner.uid.as_str())
}
