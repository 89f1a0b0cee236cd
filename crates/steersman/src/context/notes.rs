//! Notes what a reconcile writes, so that the next one of the same key sees it.
//!
//! Every client that a [`Context`](super::Context) gives out carries these notes, `ctx.live()`
//! as well: whichever way a controller writes, its cached reads never miss it. Writes that fail
//! and dry runs are not noted.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cache::{Cache, OwnWrite};
use crate::caches::Caches;
use crate::kind::{Kind, KindId};
use crate::object::{AnyObject, ObjectKey};
use crate::own_writes::OwnWrites;

/// Where the writes of one reconcile are noted.
pub(crate) struct Notes {
    /// The key being reconciled.
    pub(super) key: ObjectKey,
    /// The uid of the object being reconciled.
    pub(super) uid: Option<String>,
    pub(super) caches: Caches,
    /// The kinds that the controller said it reads.
    pub(super) declared: Arc<HashSet<KindId>>,
    pub(super) own_writes: Arc<OwnWrites>,
    /// The version that this reconcile itself gave to the object being reconciled.
    pub(super) own_version: Mutex<Option<String>>,
}

impl Notes {
    /// An object was written.
    pub(crate) fn wrote<C: AnyObject>(&self, kind: &Kind<C>, object: &C) {
        let meta = object.meta();
        self.own_writes.hot_loops.wrote(&self.key, &kind.name(), object);
        if let Some(cache) = self.cache(kind)
            && let Some(write) = cache.own_write(meta)
        {
            self.own_writes.note(&self.key, Arc::new(cache), write);
        }
        if meta.uid.is_some() && meta.uid == self.uid {
            self.own_version().clone_from(&meta.resource_version);
        }
    }

    /// An object was deleted.
    pub(crate) fn deleted<C: AnyObject>(&self, kind: &Kind<C>, key: ObjectKey, uid: &str) {
        if let Some(cache) = self.cache(kind) {
            let write = OwnWrite::Deleted { key, uid: Some(uid.to_owned()) };
            self.own_writes.note(&self.key, Arc::new(cache), write);
        }
    }

    pub(super) fn own_version(&self) -> MutexGuard<'_, Option<String>> {
        self.own_version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only a kind that the controller reads from the cache can be missed there.
    pub(super) fn cache<C: AnyObject>(&self, kind: &Kind<C>) -> Option<Cache<C>> {
        self.caches.find_of(kind).filter(|_| self.declared.contains(&kind.id()))
    }
}
