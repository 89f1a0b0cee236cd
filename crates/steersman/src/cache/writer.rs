//! The writing side of a cache, and what each write changed.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::index::{IndexValues, Indexers, Indexes};
use super::{Cache, Entry, Event, Progress, Shared, State};
use crate::object::{Cacheable, ObjectKey, version_of};

/// Changes the cache. There is one writer per cache, and it is not `Clone`.
pub struct Writer<K> {
    shared: Arc<Shared<K>>,
}

/// An empty cache: the side that writes and the side that reads.
pub fn channel<K: Cacheable>() -> (Writer<K>, Cache<K>) {
    let state = State { objects: BTreeMap::new(), indexes: Indexes::default() };
    let shared = Arc::new(Shared {
        indexers: RwLock::new(Indexers::default()),
        state: RwLock::new(state),
        progress: watch::Sender::new(Progress::default()),
    });
    (Writer { shared: Arc::clone(&shared) }, Cache { shared })
}

/// An object on its way into the cache.
struct Incoming<K> {
    object: Arc<K>,
    values: IndexValues,
    /// It was there before the cache was.
    initial: bool,
}

impl<K: Cacheable> Writer<K> {
    /// Makes the cache hold exactly `objects`, the state at `version`, in one step; returns
    /// what changed. Objects that are missing were deleted while nobody watched.
    pub fn replace(&mut self, objects: Vec<K>, version: Option<u64>) -> Vec<Event<K>> {
        let initial = !self.shared.progress.borrow().synced;
        let indexers = self.shared.indexers.read().unwrap_or_else(PoisonError::into_inner);
        // Each object gets its own allocation, so that none keeps its page of the list alive.
        let mut wanted: BTreeMap<ObjectKey, Incoming<K>> = objects
            .into_iter()
            .map(|object| {
                let values = indexers.values(&object);
                let incoming = Incoming { object: Arc::new(object), values, initial };
                (ObjectKey::of(&*incoming.object), incoming)
            })
            .collect();
        let changes = self.change(|state| {
            let gone: Vec<ObjectKey> =
                state.objects.keys().filter(|key| !wanted.contains_key(*key)).cloned().collect();
            let mut changes = Vec::new();
            for key in gone {
                changes.extend(state.remove(&key, true));
            }
            while let Some((key, incoming)) = wanted.pop_first() {
                state.insert(key, incoming, &mut changes);
            }
            changes
        });
        drop(indexers);
        self.announce(|progress| {
            progress.synced = true;
            // Set, not raised: a server restored from a backup counts from an earlier version.
            progress.version = version.unwrap_or(0);
        });
        changes
    }

    /// Puts one object into the cache. An object in the version that is already there changes
    /// nothing.
    pub fn apply(&mut self, object: K) -> Vec<Event<K>> {
        let version = version_of(object.meta().resource_version.as_deref());
        let key = ObjectKey::of(&object);
        let indexers = self.shared.indexers.read().unwrap_or_else(PoisonError::into_inner);
        let values = indexers.values(&object);
        let incoming = Incoming { object: Arc::new(object), values, initial: false };
        let mut changes = Vec::new();
        self.change(|state| state.insert(key, incoming, &mut changes));
        drop(indexers);
        self.bookmark(version);
        changes
    }

    /// Removes one object; `last` is its final state, which carries the version of the deletion.
    pub fn delete(&mut self, last: &K) -> Option<Event<K>> {
        let version = version_of(last.meta().resource_version.as_deref());
        let key = ObjectKey::of(last);
        let change = self.change(|state| state.remove(&key, false));
        self.bookmark(version);
        change
    }

    /// Notes that everything up to `version` has been seen.
    pub fn bookmark(&mut self, version: Option<u64>) {
        self.announce(|progress| progress.version = progress.version.max(version.unwrap_or(0)));
    }

    fn change<T>(&self, f: impl FnOnce(&mut State<K>) -> T) -> T {
        f(&mut self.shared.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn announce(&self, advance: impl FnOnce(&mut Progress)) {
        self.shared.progress.send_modify(|progress| {
            advance(progress);
            progress.changes += 1;
        });
    }
}

impl<K: Cacheable> State<K> {
    /// Puts an object in. One that took the name of another is a deletion and an addition: the
    /// other's end was not seen.
    fn insert(&mut self, key: ObjectKey, incoming: Incoming<K>, changes: &mut Vec<Event<K>>) {
        let Incoming { object: new, values, initial } = incoming;
        let old = self.objects.get(&key).map(|entry| Arc::clone(&entry.object));
        match old {
            Some(old) if same_version(&*old, &*new) => return,
            Some(old) if old.meta().uid == new.meta().uid => {
                self.remove(&key, false);
                changes.push(Event::Updated { old, new: Arc::clone(&new) });
            }
            Some(_) => {
                changes.extend(self.remove(&key, true));
                changes.push(Event::Added { object: Arc::clone(&new), initial: false });
            }
            None => changes.push(Event::Added { object: Arc::clone(&new), initial }),
        }
        self.indexes.insert(&key, new.meta(), &values);
        self.objects.insert(key, Entry { object: new, values });
    }

    fn remove(&mut self, key: &ObjectKey, final_state_unknown: bool) -> Option<Event<K>> {
        let Entry { object, values } = self.objects.remove(key)?;
        self.indexes.remove(key, object.meta(), &values);
        Some(Event::Deleted { object, final_state_unknown })
    }
}

fn same_version<K: Cacheable>(old: &K, new: &K) -> bool {
    let (old, new) = (old.meta(), new.meta());
    old.uid == new.uid
        && old.resource_version.is_some()
        && old.resource_version == new.resource_version
}
