//! What a controller wrote, and whether a cache shows it yet.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use tokio::sync::watch;

use super::{Cache, Progress, Untyped};
use crate::object::{ObjectKey, version_of};

/// What a controller has written and its cache has yet to show.
#[derive(Clone, Debug)]
pub(crate) enum OwnWrite {
    /// A write that gave an object this version.
    Version { key: ObjectKey, version: u64 },
    /// A write in a namespace that is watched by itself: others may be behind.
    Within { namespace: Arc<str>, key: ObjectKey, version: u64 },
    /// A write after which the object is none of those that are held: if it was one, it must go.
    Left { key: ObjectKey, uid: Option<String>, version: u64 },
    /// A delete: the object must be gone, replaced, or marked as being deleted.
    Deleted { key: ObjectKey, uid: Option<String> },
}

/// A cache of any kind, as far as a controller's own writes are concerned.
pub(crate) trait AnyCache: Send + Sync {
    /// What has to become visible after an object with this metadata was written; nothing, if it
    /// is not going to. `content` is the whole object, if that is known.
    fn own_write(&self, meta: &ObjectMeta, content: &dyn Fn() -> Option<Value>)
    -> Option<OwnWrite>;

    /// Asks for an object of which what is held seems to be old.
    fn reread(&self, key: &ObjectKey);

    /// Whether the write is visible.
    fn shows(&self, write: &OwnWrite) -> bool;

    /// Is notified of every change of the cache.
    fn progress(&self) -> watch::Receiver<Progress>;
}

impl AnyCache for Cache<Untyped> {
    fn own_write(
        &self,
        meta: &ObjectMeta,
        content: &dyn Fn() -> Option<Value>,
    ) -> Option<OwnWrite> {
        let version = version_of(meta.resource_version.as_deref())?;
        let key = ObjectKey::of_meta(meta);
        let Some(coverage) = &self.shared.coverage else {
            return Some(OwnWrite::Version { key, version });
        };
        let namespace = meta.namespace.as_deref();
        if !coverage.restriction.covers(namespace) {
            return None;
        }
        if !coverage.may_hold(meta, content) {
            return Some(OwnWrite::Left { key, uid: meta.uid.clone(), version });
        }
        Some(match namespace.filter(|_| !coverage.restriction.namespaces.is_empty()) {
            Some(namespace) => OwnWrite::Within { namespace: namespace.into(), key, version },
            None => OwnWrite::Version { key, version },
        })
    }

    fn reread(&self, key: &ObjectKey) {
        self.shared.reread(key);
    }

    fn shows(&self, write: &OwnWrite) -> bool {
        match write {
            OwnWrite::Version { key, version } => {
                self.holds(key, *version, || Cache::progress(self).version)
            }
            OwnWrite::Within { namespace, key, version } => {
                let reached = || self.shared.versions().get(namespace).copied().unwrap_or(0);
                self.holds(key, *version, reached)
            }
            OwnWrite::Left { key, uid, version } => self.item(key).is_none_or(|item| {
                item.uid() != uid.as_deref()
                    || version_of(item.resource_version()).is_none_or(|held| held >= *version)
            }),
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

impl Cache<Untyped> {
    /// Whether an object is here in this version or a later one, or is gone since. That the cache
    /// as a whole has come so far is not enough: the event may have been undecodable.
    fn holds(&self, key: &ObjectKey, version: u64, reached: impl FnOnce() -> u64) -> bool {
        match self.item(key) {
            Some(item) => version_of(item.resource_version()).is_none_or(|held| held >= version),
            None => reached() >= version,
        }
    }
}

impl OwnWrite {
    /// Which object was written.
    pub(crate) fn key(&self) -> &ObjectKey {
        match self {
            Self::Version { key, .. }
            | Self::Within { key, .. }
            | Self::Left { key, .. }
            | Self::Deleted { key, .. } => key,
        }
    }
}
