//! Notes what a reconcile writes, so that the next one of the same key sees it.
//!
//! Every client that a [`Context`](super::Context) gives out carries these notes, `ctx.live()`
//! as well: whichever way a controller writes, its cached reads never miss it, be it in a cache of
//! another form of the same objects, such as their metadata. Writes that fail and dry runs are not
//! noted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Equipment;
use crate::cache::OwnWrite;
use crate::client::{WriteObserver, WrittenObject};
use crate::kind::KindNames;
use crate::object::ObjectKey;

/// Where the writes of one reconcile are noted.
pub(crate) struct Notes {
    /// The key being reconciled.
    pub(super) key: ObjectKey,
    /// The uid of the object being reconciled.
    pub(super) uid: Option<String>,
    pub(super) equipment: Arc<Equipment>,
    /// The version that this reconcile itself gave to the object being reconciled.
    pub(super) own_version: Mutex<Option<String>>,
}

impl WriteObserver for Notes {
    fn wrote(&self, object: &WrittenObject<'_>) {
        let WrittenObject { kind, meta, content } = object;
        let Equipment { caches, declared, own_writes, .. } = &*self.equipment;
        own_writes.hot_loops.wrote(&self.key, object);
        // Metadata alone does not show whether a selector of a cache matches.
        let content = || content().filter(|_| !kind.metadata_only);
        for cache in declared.caches_of(kind, caches) {
            if let Some(write) = cache.own_write(meta, &content) {
                own_writes.note(&self.key, cache, write);
            }
        }
        if meta.uid.is_some() && meta.uid == self.uid {
            self.own_version().clone_from(&meta.resource_version);
        }
    }

    fn deleted(&self, kind: &KindNames<'_>, key: &ObjectKey, uid: &str) {
        let Equipment { caches, declared, own_writes, .. } = &*self.equipment;
        for cache in declared.caches_of(kind, caches) {
            let write = OwnWrite::Deleted { key: key.clone(), uid: Some(uid.to_owned()) };
            own_writes.note(&self.key, cache, write);
        }
    }
}

impl Notes {
    pub(super) fn own_version(&self) -> MutexGuard<'_, Option<String>> {
        self.own_version.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
