//! The writing side of a cache, and what each write changed.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use super::index::Indexers;
use super::item::Item;
use super::store::{Incoming, Store};
use super::{Event, Progress, Shared};
use crate::object::{Cacheable, ObjectKey, version_of};

/// Changes the cache. There is one writer per cache, and it is not `Clone`.
pub struct Writer<K> {
    pub(super) shared: Arc<Shared<K>>,
}

/// The whole state of a kind at one version.
pub struct Replacement<K> {
    /// Every object that could be decoded.
    pub objects: Vec<Item<K>>,
    /// Which others exist. What the cache knows of them stays.
    pub skipped: Vec<ObjectKey>,
    /// The version of the list.
    pub version: Option<u64>,
}

impl<K: Cacheable> Writer<K> {
    /// Makes the cache hold exactly these objects, in one step; returns what changed. Objects
    /// that are missing were deleted while nobody watched.
    pub fn replace(&mut self, replacement: Replacement<K>) -> Vec<Event<K>> {
        let Replacement { mut objects, skipped, version } = replacement;
        let initial = !self.shared.progress.borrow().synced;
        let exist: HashSet<ObjectKey> =
            objects.iter().map(|item| item.key().clone()).chain(skipped).collect();
        // Most are as they were: their index values need not be found again.
        let present = self.shared.read().ordered();
        objects.retain(|item| {
            !present.get(item.key()).is_some_and(|known| known.0.same_version(item))
        });
        drop(present); // or every removal below would copy what it shares
        let changes = self.write(objects, |store, incoming| {
            let ordered = store.ordered();
            let gone = ordered.iter().map(|item| item.0.key()).filter(|key| !exist.contains(key));
            let mut changes: Vec<Event<K>> =
                gone.filter_map(|key| store.remove(key, true)).collect();
            for incoming in incoming {
                store.insert(incoming, initial, &mut changes);
            }
            changes
        });
        self.announce(|progress| {
            progress.synced = true;
            // Set, not raised: a server restored from a backup counts from an earlier version.
            progress.version = version.unwrap_or(0);
        });
        changes
    }

    /// Puts objects into the cache, in this order. One in the version that is already there
    /// changes nothing.
    pub fn apply(&mut self, objects: Vec<Item<K>>) -> Vec<Event<K>> {
        let version = objects.iter().filter_map(|item| version_of(item.resource_version())).max();
        let changes = self.write(objects, |store, incoming| {
            let mut changes = Vec::new();
            for incoming in incoming {
                store.insert(incoming, false, &mut changes);
            }
            changes
        });
        self.bookmark(version);
        changes
    }

    /// Removes one object; `last` is its final state, which carries the version of the deletion.
    pub fn delete(&mut self, last: &Item<K>) -> Option<Event<K>> {
        let known = self.lock().remove(last.key(), false);
        self.bookmark(version_of(last.resource_version()));
        let Event::Deleted { object, .. } = known? else { return None };
        // If it was another that had the name, its own final state is not known.
        let final_state_unknown = object.uid() != last.uid();
        let object = if final_state_unknown { object } else { last.clone() };
        Some(Event::Deleted { object, final_state_unknown })
    }

    /// Removes the object with this key, whose deletion has this version.
    pub fn delete_key(&mut self, key: &ObjectKey, version: Option<u64>) -> Option<Event<K>> {
        let change = self.lock().remove(key, false);
        self.bookmark(version);
        change
    }

    /// Notes that everything up to `version` has been seen.
    pub fn bookmark(&mut self, version: Option<u64>) {
        self.announce(|progress| progress.version = progress.version.max(version.unwrap_or(0)));
    }

    /// Calls `change` under the lock, with the objects and their index values, which were
    /// computed without it. If an index was added meanwhile, they are computed again.
    fn write<T>(
        &self,
        objects: Vec<Item<K>>,
        change: impl FnOnce(&mut Store<K>, Vec<Incoming<K>>) -> T,
    ) -> T {
        let mut objects = objects;
        loop {
            let indexers = Arc::clone(&self.shared.read().indexers);
            let incoming = with_values(&indexers, objects);
            let mut store = self.lock();
            if Arc::ptr_eq(&store.indexers, &indexers) {
                return change(&mut store, incoming);
            }
            objects = incoming.into_iter().map(|incoming| incoming.item).collect();
        }
    }

    fn lock(&self) -> std::sync::RwLockWriteGuard<'_, Store<K>> {
        self.shared.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, advance: impl FnOnce(&mut Progress)) {
        self.shared.progress.send_modify(advance); // wakes whoever waits, changed or not
    }
}

fn with_values<K: Cacheable>(indexers: &Indexers<K>, objects: Vec<Item<K>>) -> Vec<Incoming<K>> {
    let with = |item| Incoming { values: indexers.authors_values(&item), item };
    objects.into_iter().map(with).collect()
}
