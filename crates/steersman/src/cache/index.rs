//! Secondary indexes of a cache: by owner, and by names the author chooses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::object::{Cacheable, ObjectKey};

/// Gives the values under which an object is found.
pub(super) type IndexFn<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// All indexes of one cache.
pub(super) struct Indexes<K> {
    owners: Postings,
    named: HashMap<&'static str, (IndexFn<K>, Postings)>,
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

    fn keys(&self, value: &str) -> impl Iterator<Item = &ObjectKey> {
        self.0.get(value).into_iter().flatten()
    }
}

impl<K: Cacheable> Indexes<K> {
    pub(super) fn new() -> Self {
        Self { owners: Postings::default(), named: HashMap::new() }
    }

    pub(super) fn add(
        &mut self,
        name: &'static str,
        values: IndexFn<K>,
        objects: &BTreeMap<ObjectKey, Arc<K>>,
    ) {
        if self.named.contains_key(name) {
            return;
        }
        let mut postings = Postings::default();
        for (key, object) in objects {
            for value in values(object) {
                postings.insert(&value, key);
            }
        }
        self.named.insert(name, (values, postings));
    }

    pub(super) fn insert(&mut self, key: &ObjectKey, object: &K) {
        for uid in owner_uids(object.meta()) {
            self.owners.insert(uid, key);
        }
        for (values, postings) in self.named.values_mut() {
            for value in values(object) {
                postings.insert(&value, key);
            }
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey, object: &K) {
        for uid in owner_uids(object.meta()) {
            self.owners.remove(uid, key);
        }
        for (values, postings) in self.named.values_mut() {
            for value in values(object) {
                postings.remove(&value, key);
            }
        }
    }
}

impl<K> Indexes<K> {
    pub(super) fn owner(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.owners.keys(uid)
    }

    pub(super) fn named<'a>(
        &'a self,
        name: &str,
        value: &str,
    ) -> impl Iterator<Item = &'a ObjectKey> + use<'a, K> {
        let postings = self.named.get(name).map(|(_, postings)| postings);
        let keys = postings.and_then(|p| p.0.get(value));
        keys.into_iter().flatten()
    }
}

fn owner_uids(meta: &ObjectMeta) -> impl Iterator<Item = &str> {
    meta.owner_references.iter().flatten().map(|owner| owner.uid.as_str())
}
