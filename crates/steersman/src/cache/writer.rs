//! The writing side of a cache, and what each write changed.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use super::index::Indexers;
use super::item::{Item, Untyped};
use super::store::{Incoming, Store, in_namespace};
use super::{Event, Shared};
use crate::object::{ObjectKey, version_of};

/// Changes the cache. There is one writer per cache, and it is not `Clone`.
pub(crate) struct Writer {
    pub(super) shared: Arc<Shared>,
    /// The namespace that what comes next is about, where namespaces are watched one by one.
    pub(super) scope: Option<Arc<str>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.progress.send_modify(|progress| progress.ended = true);
    }
}

/// The whole state of a kind at one version.
pub(crate) struct Replacement {
    /// Every object that could be decoded.
    pub objects: Vec<Item<Untyped>>,
    /// Which others exist. What the cache knows of them stays.
    pub skipped: Vec<ObjectKey>,
    /// The version of the list.
    pub version: Option<u64>,
}

impl Writer {
    /// Says that what comes next is about one namespace only, which has versions of its own.
    pub(crate) fn within(&mut self, namespace: Option<&Arc<str>>) {
        self.scope = namespace.cloned();
    }

    /// Makes the cache hold exactly these objects, in one step; returns what changed. Objects
    /// that are missing were deleted while nobody watched.
    pub(crate) fn replace(&mut self, replacement: Replacement) -> Vec<Event<Untyped>> {
        let Replacement { mut objects, skipped, version } = replacement;
        let initial = !self.is_synced();
        let scope = self.scope.clone();
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
            let concerned: Box<dyn Iterator<Item = &Item<Untyped>>> = match &scope {
                None => Box::new(ordered.iter().map(|item| &item.0)),
                Some(namespace) => Box::new(in_namespace(&ordered, namespace)),
            };
            let gone = concerned.map(Item::key).filter(|key| !exist.contains(key));
            let mut changes: Vec<Event<Untyped>> =
                gone.filter_map(|key| store.remove(key, true)).collect();
            for incoming in incoming {
                store.insert(incoming, initial, &mut changes);
            }
            changes
        });
        self.announce(Reached::State(version.unwrap_or(0)));
        changes
    }

    /// Puts objects into the cache, in this order. One in the version that is already there, or
    /// in an earlier one, changes nothing.
    pub(crate) fn apply(&mut self, objects: Vec<Item<Untyped>>) -> Vec<Event<Untyped>> {
        let version = objects.iter().filter_map(|item| version_of(item.resource_version())).max();
        let changes = self.put(objects);
        self.bookmark(version);
        changes
    }

    /// Puts an object into the cache that was read by itself. What its version says of it, it says
    /// of no other.
    pub(crate) fn refresh(&mut self, object: Item<Untyped>) -> Vec<Event<Untyped>> {
        let changes = self.put(vec![object]);
        self.shared.progress.send_modify(|_| {}); // whoever waits for this object looks again
        changes
    }

    fn put(&self, objects: Vec<Item<Untyped>>) -> Vec<Event<Untyped>> {
        self.write(objects, |store, incoming| {
            let mut changes = Vec::new();
            for incoming in incoming {
                let held = store.get(incoming.item.key());
                if !held.is_some_and(|held| held.is_newer_than(&incoming.item)) {
                    store.insert(incoming, false, &mut changes);
                }
            }
            changes
        })
    }

    /// Removes one object; `last` is its final state, which carries the version of the deletion.
    pub(crate) fn delete(&mut self, last: &Item<Untyped>) -> Option<Event<Untyped>> {
        let version = version_of(last.resource_version());
        let known = self.remove(last.key(), version);
        self.bookmark(version);
        let Event::Deleted { object, .. } = known? else { return None };
        // If it was another that had the name, its own final state is not known.
        let final_state_unknown = object.uid() != last.uid();
        let object = if final_state_unknown { object } else { last.clone() };
        Some(Event::Deleted { object, final_state_unknown })
    }

    /// Removes the object with this key, whose deletion has this version.
    pub(crate) fn delete_key(
        &mut self,
        key: &ObjectKey,
        version: Option<u64>,
    ) -> Option<Event<Untyped>> {
        let change = self.remove(key, version);
        self.bookmark(version);
        change
    }

    /// Removes an object, unless the one that is here came after that deletion.
    fn remove(&self, key: &ObjectKey, version: Option<u64>) -> Option<Event<Untyped>> {
        let mut store = self.lock();
        let held = version_of(store.get(key)?.resource_version());
        if let (Some(held), Some(deleted)) = (held, version)
            && held > deleted
        {
            return None;
        }
        store.remove(key, false)
    }

    /// Notes that everything up to `version` has been seen.
    pub(crate) fn bookmark(&mut self, version: Option<u64>) {
        self.announce(Reached::Change(version.unwrap_or(0)));
    }

    /// Whether the first list is complete, of the namespace if they are watched one by one.
    fn is_synced(&self) -> bool {
        match &self.scope {
            None => self.shared.progress.borrow().synced,
            Some(namespace) => self.shared.versions().contains_key(namespace),
        }
    }

    /// Calls `change` under the lock, with the objects and their index values, which were
    /// computed without it. If an index was added meanwhile, they are computed again.
    fn write<T>(
        &self,
        objects: Vec<Item<Untyped>>,
        change: impl FnOnce(&mut Store, Vec<Incoming>) -> T,
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

    fn lock(&self) -> std::sync::RwLockWriteGuard<'_, Store> {
        self.shared.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes how far the cache has come, and wakes whoever waits, changed or not.
    fn announce(&self, reached: Reached) {
        let (Some(scope), Some(coverage)) = (&self.scope, &self.shared.coverage) else {
            return self.shared.progress.send_modify(|progress| match reached {
                Reached::State(version) => (progress.synced, progress.version) = (true, version),
                Reached::Change(version) => progress.version = progress.version.max(version),
            });
        };
        let furthest_behind = {
            let mut versions = self.shared.versions();
            match (reached, versions.get_mut(scope)) {
                (Reached::Change(version), Some(known)) => *known = version.max(*known),
                (Reached::Change(_), None) => {}
                (Reached::State(version), _) => _ = versions.insert(Arc::clone(scope), version),
            }
            let complete = versions.len() == coverage.restriction.namespaces.len();
            versions.values().copied().min().filter(|_| complete)
        };
        self.shared.progress.send_modify(|progress| {
            progress.synced = furthest_behind.is_some();
            progress.version = furthest_behind.unwrap_or(0);
        });
    }
}

/// How far a write brought a cache.
#[derive(Clone, Copy)]
enum Reached {
    /// A whole state of this version. It is set, not raised: a server restored from a backup
    /// counts from an earlier version.
    State(u64),
    /// A change or a bookmark of this version.
    Change(u64),
}

fn with_values(indexers: &Indexers, objects: Vec<Item<Untyped>>) -> Vec<Incoming> {
    let with = |item| Incoming { values: indexers.authors_values(&item), item };
    objects.into_iter().map(with).collect()
}
