//! Notes what a reconcile writes, so that the next one of the same key sees it.
//!
//! Every client that a [`Context`](super::Context) gives out carries these notes, `ctx.live()`
//! as well: whichever way a controller writes, its cached reads never miss it, be it in a cache of
//! another form of the same objects, such as their metadata. Writes that fail and dry runs are not
//! noted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Equipment;
use crate::cache::OwnWrite;
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey};

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

impl Notes {
    /// An object was written.
    pub(crate) fn wrote<C: AnyObject>(&self, kind: &Kind<C>, object: &C) {
        let meta = object.meta();
        let Equipment { caches, declared, own_writes, .. } = &*self.equipment;
        own_writes.hot_loops.wrote(&self.key, &kind.name(), object);
        let content = || serde_json::to_value(object).ok().filter(|_| !kind.is_metadata_only());
        for cache in declared.caches_of(kind, caches) {
            if let Some(write) = cache.own_write(meta, &content) {
                own_writes.note(&self.key, cache, write);
            }
        }
        if meta.uid.is_some() && meta.uid == self.uid {
            self.own_version().clone_from(&meta.resource_version);
        }
    }

    /// An object was deleted.
    pub(crate) fn deleted<C: AnyObject>(&self, kind: &Kind<C>, key: &ObjectKey, uid: &str) {
        let Equipment { caches, declared, own_writes, .. } = &*self.equipment;
        for cache in declared.caches_of(kind, caches) {
            let write = OwnWrite::Deleted { key: key.clone(), uid: Some(uid.to_owned()) };
            own_writes.note(&self.key, cache, write);
        }
    }

    pub(super) fn own_version(&self) -> MutexGuard<'_, Option<String>> {
        self.own_version.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
