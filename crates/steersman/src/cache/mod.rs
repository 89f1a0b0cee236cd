//! The cache of a kind: every object of it, indexed, as of one resourceVersion.
//!
//! One [`Writer`] (not `Clone`, held by the informer) changes it; any number of [`Cache`]
//! handles read it. Objects are shared as `Arc<K>`, so reads copy nothing and nobody can
//! change what another reader sees. The informer before it feeds it deltas; the context after
//! it reads.

mod event;
mod index;
mod writer;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::watch;

use crate::object::{Cacheable, ObjectKey};
pub use event::Event;
use index::{IndexFn, IndexValues, Indexers, Indexes, values_of};
pub use writer::{Writer, channel};

/// Reads the cache of a kind. Cheap to clone.
pub struct Cache<K> {
    shared: Arc<Shared<K>>,
}

/// What the writer and the readers share.
struct Shared<K> {
    /// Locked before `state`, and held while an object's values are computed and filed, so
    /// that a new index misses no object. The functions may read the cache, not add indexes.
    indexers: RwLock<Indexers<K>>,
    /// Held only for look-ups and single updates, never across user code or an await.
    state: RwLock<State<K>>,
    /// Announces every change after it is visible in `state`.
    progress: watch::Sender<Progress>,
}

struct State<K> {
    /// Ordered by namespace, then name: a namespace is a contiguous range.
    objects: BTreeMap<ObjectKey, Entry<K>>,
    /// Covers exactly the objects above.
    indexes: Indexes,
}

struct Entry<K> {
    object: Arc<K>,
    /// Under which values the indexes have it.
    values: IndexValues,
}

/// How far a cache has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the first list is complete.
    pub synced: bool,
    /// Everything up to this version is visible; zero if the server's versions are not numbers.
    pub version: u64,
    /// Counts changes, so that waiting for "the next change" is possible.
    changes: u64,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Cacheable> Cache<K> {
    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.read().objects.get(key).map(|entry| Arc::clone(&entry.object))
    }

    /// Every object, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().objects.values().map(|entry| Arc::clone(&entry.object)).collect()
    }

    /// Every object in a namespace, ordered by name.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let first = ObjectKey::namespaced(namespace, "");
        let state = self.read();
        state
            .objects
            .range((Bound::Included(first), Bound::Unbounded))
            .take_while(|(key, _)| key.namespace.as_deref() == Some(namespace))
            .map(|(_, entry)| Arc::clone(&entry.object))
            .collect()
    }

    /// Every object that names this uid among its owners.
    pub fn by_owner(&self, uid: &str) -> Vec<Arc<K>> {
        self.read().owned_by(uid)
    }

    /// Every object to which the named index gives this value. An index that nobody added
    /// finds nothing.
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<K>> {
        let state = self.read();
        state.resolve(state.indexes.named(index, value))
    }

    /// Adds a named index; `values` gives the values under which an object is found, and may
    /// not add indexes itself. An index of the same name is kept as it is.
    pub fn add_index(
        &self,
        name: &'static str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        let values: IndexFn<K> = Arc::new(values);
        let mut indexers = self.shared.indexers.write().unwrap_or_else(PoisonError::into_inner);
        if !indexers.add(name, Arc::clone(&values)) {
            return;
        }
        // The writer waits for `indexers`, so what is there now is all there is to file.
        let filed: Vec<(ObjectKey, Vec<String>)> = self
            .list()
            .iter()
            .map(|object| (ObjectKey::of(&**object), values_of(name, &values, &**object)))
            .collect();
        let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
        let State { objects, indexes } = &mut *state;
        for (key, values) in filed {
            indexes.insert_named(name, &key, &values);
            if let Some(entry) = objects.get_mut(&key) {
                entry.values.push((name, values));
            }
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How far the cache has come.
    pub fn progress(&self) -> Progress {
        *self.shared.progress.borrow()
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        self.wait_until(|progress| progress.synced).await;
    }

    /// Waits until everything up to `version` is visible.
    pub async fn reached(&self, version: u64) {
        self.wait_until(|progress| progress.version >= version).await;
    }

    async fn wait_until(&self, condition: impl FnMut(&Progress) -> bool) {
        let mut progress = self.shared.progress.subscribe();
        // The sender lives in `shared`, which `self` keeps alive: this cannot fail.
        let _ = progress.wait_for(condition).await;
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.shared.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> State<K> {
    fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.resolve(self.indexes.owner(uid))
    }

    fn resolve<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) -> Vec<Arc<K>> {
        keys.filter_map(|key| self.objects.get(key))
            .map(|entry| Arc::clone(&entry.object))
            .collect()
    }
}

/// What a controller has written and its cache has yet to show.
#[derive(Clone, Debug)]
pub(crate) enum OwnWrite {
    /// A write that gave the kind this version.
    Version(u64),
    /// A delete: the object must be gone, replaced, or marked as being deleted.
    Deleted { key: ObjectKey, uid: Option<String> },
}

/// A cache of any kind, as far as a controller's own writes are concerned.
pub(crate) trait AnyCache: Send + Sync {
    /// Whether the write is visible.
    fn shows(&self, write: &OwnWrite) -> bool;

    /// Hears of every change of the cache.
    fn progress(&self) -> watch::Receiver<Progress>;
}

impl<K: Cacheable> AnyCache for Cache<K> {
    fn shows(&self, write: &OwnWrite) -> bool {
        match write {
            OwnWrite::Version(version) => Cache::progress(self).version >= *version,
            OwnWrite::Deleted { key, uid } => match self.get(key) {
                None => true,
                Some(object) => {
                    let meta = object.meta();
                    meta.deletion_timestamp.is_some() || (uid.is_some() && meta.uid != *uid)
                }
            },
        }
    }

    fn progress(&self) -> watch::Receiver<Progress> {
        self.shared.progress.subscribe()
    }
}

#[cfg(test)]
mod tests;
