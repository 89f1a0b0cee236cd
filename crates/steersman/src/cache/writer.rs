//! The writing side of a cache, and what each write changed.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::index::Indexes;
use super::{Cache, Event, Progress, Shared, State};
use crate::object::{Cacheable, ObjectKey, version_of};

/// Changes the cache. There is one writer per cache, and it is not `Clone`.
pub struct Writer<K> {
    shared: Arc<Shared<K>>,
}

/// An empty cache: the side that writes and the side that reads.
pub fn channel<K: Cacheable>() -> (Writer<K>, Cache<K>) {
    let state = State { objects: BTreeMap::new(), indexes: Indexes::new() };
    let progress = watch::Sender::new(Progress::default());
    let shared = Arc::new(Shared { state: RwLock::new(state), progress });
    (Writer { shared: Arc::clone(&shared) }, Cache { shared })
}

impl<K: Cacheable> Writer<K> {
    /// Makes the cache hold exactly `objects`, the state at `version`, in one step; returns
    /// what changed. Objects that are missing were deleted while nobody watched.
    pub fn replace(&mut self, objects: Vec<K>, version: Option<u64>) -> Vec<Event<K>> {
        // Each object gets its own allocation, so that none keeps its page of the list alive.
        let mut wanted: BTreeMap<ObjectKey, Arc<K>> =
            objects.into_iter().map(|object| (ObjectKey::of(&object), Arc::new(object))).collect();
        let initial = !self.shared.progress.borrow().synced;
        let changes = self.change(|state| {
            let gone: Vec<ObjectKey> =
                state.objects.keys().filter(|key| !wanted.contains_key(*key)).cloned().collect();
            let mut changes = Vec::new();
            for key in gone {
                changes.extend(state.remove(&key, true));
            }
            while let Some((key, object)) = wanted.pop_first() {
                changes.extend(state.insert(key, object, initial));
            }
            changes
        });
        self.announce(true, version);
        changes
    }

    /// Puts one object into the cache. An object in the version that is already there changes
    /// nothing.
    pub fn apply(&mut self, object: K) -> Option<Event<K>> {
        let version = version_of(object.meta().resource_version.as_deref());
        let key = ObjectKey::of(&object);
        let change = self.change(|state| state.insert(key, Arc::new(object), false));
        self.announce(false, version);
        change
    }

    /// Removes one object; `last` is its final state, which carries the version of the deletion.
    pub fn delete(&mut self, last: &K) -> Option<Event<K>> {
        let version = version_of(last.meta().resource_version.as_deref());
        let key = ObjectKey::of(last);
        let change = self.change(|state| state.remove(&key, false));
        self.announce(false, version);
        change
    }

    /// Notes that everything up to `version` has been seen.
    pub fn bookmark(&mut self, version: Option<u64>) {
        self.announce(false, version);
    }

    fn change<T>(&self, f: impl FnOnce(&mut State<K>) -> T) -> T {
        f(&mut self.shared.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn announce(&self, synced: bool, version: Option<u64>) {
        self.shared.progress.send_modify(|progress| {
            progress.synced |= synced;
            progress.version = progress.version.max(version.unwrap_or(0));
            progress.changes += 1;
        });
    }
}

impl<K: Cacheable> State<K> {
    fn insert(&mut self, key: ObjectKey, new: Arc<K>, initial: bool) -> Option<Event<K>> {
        let Some(old) = self.objects.get(&key).cloned() else {
            self.indexes.insert(&key, &new);
            self.objects.insert(key, Arc::clone(&new));
            return Some(Event::Added { object: new, initial });
        };
        if same_version(&*old, &*new) {
            return None;
        }
        self.indexes.remove(&key, &old);
        self.indexes.insert(&key, &new);
        self.objects.insert(key, Arc::clone(&new));
        Some(Event::Updated { old, new })
    }

    fn remove(&mut self, key: &ObjectKey, final_state_unknown: bool) -> Option<Event<K>> {
        let object = self.objects.remove(key)?;
        self.indexes.remove(key, &object);
        Some(Event::Deleted { object, final_state_unknown })
    }
}

fn same_version<K: Cacheable>(old: &K, new: &K) -> bool {
    let (old, new) = (old.meta(), new.meta());
    old.uid == new.uid
        && old.resource_version.is_some()
        && old.resource_version == new.resource_version
}
