//! The compact form: an object as the bytes that the server sent, compressed, beside what must
//! be at hand without decoding.
//!
//! The typed structs of `k8s-openapi` take about eight times the size of an object's JSON;
//! compressed against a dictionary of others of its kind, the JSON shrinks about as much again.
//! What is decoded is kept while it is among the recently used, so hot objects are read as if
//! they were typed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::dictionary::{Dictionary, Encoded};
use super::item::{Item, Meta};
use super::recent::Recent;
use crate::object::{Cacheable, ObjectKey};

/// What all compact objects of a cache share.
pub(super) struct Compact<K> {
    pub(super) dictionary: Dictionary,
    recent: Recent<K>,
    /// How many objects turned out to be undecodable when they were read.
    undecodable: AtomicU64,
}

impl<K> Compact<K> {
    /// Keeps up to `recent` objects decoded.
    pub(super) fn new(recent: usize) -> Self {
        let recent = Recent::new(recent);
        Self { dictionary: Dictionary::default(), recent, undecodable: AtomicU64::new(0) }
    }

    pub(super) fn undecodable(&self) -> u64 {
        self.undecodable.load(Ordering::Relaxed)
    }
}

/// What is at hand of a compact object, beside its key.
#[derive(Default)]
pub(super) struct Identity {
    pub(super) uid: Option<Box<str>>,
    pub(super) resource_version: Option<Box<str>>,
    /// Sorted by name. Names and values are shared among objects.
    pub(super) labels: Box<[(Arc<str>, Arc<str>)]>,
    pub(super) owner_uids: Box<[Arc<str>]>,
}

/// A compact object.
pub(super) struct Packed<K> {
    identity: Identity,
    encoded: Encoded,
    decoded: Mutex<Decoded<K>>,
    shared: Arc<Compact<K>>,
}

/// What has become of the encoded bytes.
enum Decoded<K> {
    Not,
    /// Only the metadata, which several handlers of an event want; kept like a whole object.
    Metadata {
        meta: Arc<ObjectMeta>,
        used: bool,
    },
    /// Kept until it is no longer recently used.
    Kept {
        object: Arc<K>,
        used: bool,
    },
    /// It is not an object of its type. Said once.
    Never,
}

impl<K> Packed<K> {
    pub(super) fn new(
        key: &ObjectKey,
        identity: Identity,
        json: &[u8],
        shared: Arc<Compact<K>>,
    ) -> Self {
        let encoded = shared.dictionary.encode(key, json);
        Self { identity, encoded, decoded: Mutex::new(Decoded::Not), shared }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.encoded.bytes.len() as u64
    }

    pub(super) fn uid(&self) -> Option<&str> {
        self.identity.uid.as_deref()
    }

    pub(super) fn resource_version(&self) -> Option<&str> {
        self.identity.resource_version.as_deref()
    }

    pub(super) fn label(&self, name: &str) -> Option<&str> {
        let labels = &self.identity.labels;
        let found = labels.binary_search_by(|(label, _)| (**label).cmp(name)).ok()?;
        labels.get(found).map(|(_, value)| &**value)
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.identity.labels.iter().map(|(name, value)| (&**name, &**value))
    }

    pub(super) fn owner_uids(&self) -> impl Iterator<Item = &str> {
        self.identity.owner_uids.iter().map(|uid| &**uid)
    }

    /// Lets go of the decoded object unless it was used since it was last asked this; true if
    /// it was let go.
    pub(super) fn cool(&self) -> bool {
        let mut decoded = self.lock();
        match &mut *decoded {
            Decoded::Kept { used, .. } | Decoded::Metadata { used, .. } => {
                if std::mem::take(used) {
                    return false;
                }
                *decoded = Decoded::Not;
            }
            Decoded::Not | Decoded::Never => {}
        }
        true
    }

    /// Whether it is known not to be an object of its type.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(*self.lock(), Decoded::Never)
    }

    fn lock(&self) -> MutexGuard<'_, Decoded<K>> {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Cacheable> Packed<K> {
    /// The object, if it is kept decoded.
    pub(super) fn decoded(&self) -> Option<Arc<K>> {
        match &mut *self.lock() {
            Decoded::Kept { object, used } => {
                *used = true;
                Some(Arc::clone(object))
            }
            Decoded::Not | Decoded::Metadata { .. } | Decoded::Never => None,
        }
    }

    /// The object of `item`, whose body this is; it is kept decoded if `keep`.
    pub(super) fn decode(&self, item: &Item<K>, keep: bool) -> Option<Arc<K>> {
        if self.is_unreadable() {
            return None;
        }
        if let Some(object) = self.decoded() {
            return Some(object);
        }
        // Decoded without the lock: two readers at once may both do it, which harms nobody.
        let object = self.read::<K>().map_err(|error| self.give_up(item.key(), &error)).ok()?;
        let object = Arc::new(object);
        if keep {
            self.keep_object(item, Arc::clone(&object));
        }
        Some(object)
    }

    /// Keeps the object of `item`, whose body this is, decoded while it is recently used.
    pub(super) fn keep_object(&self, item: &Item<K>, object: Arc<K>) {
        self.keep(item, Decoded::Kept { object, used: false });
    }

    /// The metadata of `item`, whose body this is.
    pub(super) fn meta(&self, item: &Item<K>) -> Option<Meta<K>> {
        match &mut *self.lock() {
            Decoded::Kept { object, used } => {
                *used = true;
                return Some(Meta::Whole(Arc::clone(object)));
            }
            Decoded::Metadata { meta, used } => {
                *used = true;
                return Some(Meta::Alone(Arc::clone(meta)));
            }
            Decoded::Not | Decoded::Never => {}
        }
        let meta = Arc::new(self.view::<OnlyMetadata>(item.key())?.metadata);
        self.keep(item, Decoded::Metadata { meta: Arc::clone(&meta), used: false });
        Some(Meta::Alone(meta))
    }

    /// Keeps what was decoded for as long as it is recently used.
    fn keep(&self, item: &Item<K>, what: Decoded<K>) {
        if !self.shared.recent.keeps_any() {
            return;
        }
        let mut decoded = self.lock();
        let listed = match &*decoded {
            // Another reader was faster, or found out that it cannot be decoded.
            Decoded::Never | Decoded::Kept { .. } => return,
            Decoded::Metadata { .. } => true,
            Decoded::Not => false,
        };
        *decoded = what;
        drop(decoded);
        if !listed {
            self.shared.recent.keep(item);
        }
    }

    pub(super) fn view<V: DeserializeOwned>(&self, key: &ObjectKey) -> Option<V> {
        match self.read() {
            Ok(view) => Some(view),
            Err(error) => {
                tracing::error!(kind = std::any::type_name::<V>(), %key, %error, "object cannot be decoded");
                None
            }
        }
    }

    fn read<V: DeserializeOwned>(&self) -> Result<V, serde_json::Error> {
        self.shared.dictionary.with_decoded(&self.encoded, |json| serde_json::from_slice(json))
    }

    fn give_up(&self, key: &ObjectKey, error: &serde_json::Error) {
        *self.lock() = Decoded::Never;
        self.shared.undecodable.fetch_add(1, Ordering::Relaxed);
        let kind = std::any::type_name::<K>();
        tracing::error!(kind, %key, %error, "object cannot be decoded and is skipped");
    }
}

#[derive(Deserialize)]
struct OnlyMetadata {
    #[serde(default)]
    metadata: ObjectMeta,
}
