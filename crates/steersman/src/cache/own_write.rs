//! What a controller wrote, and whether a cache shows it yet.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::watch;

use super::{Cache, Progress};
use crate::object::{Cacheable, ObjectKey, version_of};

/// What a controller has written and its cache has yet to show.
#[derive(Clone, Debug)]
pub(crate) enum OwnWrite {
    /// A write that gave the kind this version.
    Version(u64),
    /// A write in a namespace that is watched by itself: others may be behind.
    Within { namespace: Arc<str>, version: u64 },
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
            OwnWrite::Within { namespace, version } => {
                self.shared.versions().get(namespace).is_some_and(|reached| reached >= version)
            }
            OwnWrite::Deleted { key, uid } => self.item(key).is_none_or(|item| {
                let replaced = uid.is_some() && item.uid() != uid.as_deref();
                replaced || item.meta().is_some_and(|meta| meta.deletion_timestamp.is_some())
            }),
        }
    }

    fn progress(&self) -> watch::Receiver<Progress> {
        self.shared.progress.subscribe()
    }
}

impl<K: Cacheable> Cache<K> {
    /// What has to become visible after an object with this metadata was written; nothing, if it
    /// is not going to.
    pub(crate) fn own_write(&self, meta: &ObjectMeta) -> Option<OwnWrite> {
        let version = version_of(meta.resource_version.as_deref())?;
        let Some(coverage) = &self.shared.coverage else {
            return Some(OwnWrite::Version(version));
        };
        if !coverage.may_hold(meta) {
            return None;
        }
        let namespace = meta.namespace.as_deref();
        Some(match namespace.filter(|_| !coverage.restriction.namespaces.is_empty()) {
            Some(namespace) => OwnWrite::Within { namespace: namespace.into(), version },
            None => OwnWrite::Version(version),
        })
    }
}
