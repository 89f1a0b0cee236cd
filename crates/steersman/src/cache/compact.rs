//! The compact form: an object as the bytes that the server sent, compressed, beside what must
//! be at hand without decoding.
//!
//! The typed structs of `k8s-openapi` take about eight times the size of an object's JSON;
//! compressed against a dictionary of others of its kind, the JSON shrinks about as much again.
//! What is decoded is kept while it is among the recently used, so hot objects are read as if
//! they were typed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::dictionary::{Dictionary, Encoded};
use super::item::{Held, Meta, Metadata};
use super::recent::Recent;
use crate::codec::Codec;
use crate::object::{ErasedObject, ObjectKey};

/// What all compact objects of a cache share.
pub(super) struct Compact {
    codec: Codec,
    pub(super) dictionary: Dictionary,
    recent: Recent,
    /// How many objects turned out to be undecodable when they were read.
    undecodable: AtomicU64,
    /// Where such objects are asked for again.
    rereads: OnceLock<mpsc::Sender<ObjectKey>>,
}

impl Compact {
    /// Keeps up to `recent` objects decoded.
    pub(super) fn new(codec: Codec, recent: usize) -> Self {
        Self {
            codec,
            dictionary: Dictionary::default(),
            recent: Recent::new(recent),
            undecodable: AtomicU64::new(0),
            rereads: OnceLock::new(),
        }
    }

    /// Says where objects are asked for that turn out to be undecodable.
    pub(super) fn reread_by(&self, requests: mpsc::Sender<ObjectKey>) {
        let _ = self.rereads.set(requests);
    }

    pub(super) fn undecodable(&self) -> u64 {
        self.undecodable.load(Ordering::Relaxed)
    }

    /// Those that stay decoded.
    pub(super) fn recent(&self) -> &Recent {
        &self.recent
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
pub(super) struct Packed {
    identity: Identity,
    encoded: Encoded,
    decoded: Mutex<Decoded>,
    shared: Arc<Compact>,
}

/// What has become of the encoded bytes.
enum Decoded {
    Not,
    /// Only the metadata, which several handlers of an event want; kept like a whole object.
    Metadata {
        meta: Arc<ObjectMeta>,
        used: bool,
    },
    /// Kept until it is no longer recently used.
    Kept {
        object: Arc<dyn ErasedObject>,
        used: bool,
    },
    /// It is not an object of its type. Said once.
    Never,
}

impl Packed {
    pub(super) fn new(
        key: &ObjectKey,
        identity: Identity,
        json: &[u8],
        shared: Arc<Compact>,
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

    /// Whether so many objects of its kind can be kept decoded at once.
    pub(super) fn keeps(&self, count: usize) -> bool {
        self.shared.recent.keeps(count)
    }

    /// Whether it is known not to be an object of its type.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(*self.lock(), Decoded::Never)
    }

    fn lock(&self) -> MutexGuard<'_, Decoded> {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Packed {
    /// The object, if it is kept decoded.
    pub(super) fn decoded(&self) -> Option<Arc<dyn ErasedObject>> {
        match &mut *self.lock() {
            Decoded::Kept { object, used } => {
                *used = true;
                Some(Arc::clone(object))
            }
            Decoded::Not | Decoded::Metadata { .. } | Decoded::Never => None,
        }
    }

    /// The object of `held`, whose body this is; it is kept decoded if `keep`.
    pub(super) fn decode(&self, held: &Arc<Held>, keep: bool) -> Option<Arc<dyn ErasedObject>> {
        if self.is_unreadable() {
            return None;
        }
        if let Some(object) = self.decoded() {
            return Some(object);
        }
        // Decoded without the lock: two readers at once may both do it, which harms nobody.
        let object = self.read_whole().map_err(|error| self.give_up(&held.key, &error)).ok()?;
        if keep {
            self.keep_object(held, Arc::clone(&object));
        }
        Some(object)
    }

    /// Keeps the object of `held`, whose body this is, decoded while it is recently used.
    pub(super) fn keep_object(&self, held: &Arc<Held>, object: Arc<dyn ErasedObject>) {
        self.keep(held, Decoded::Kept { object, used: true });
    }

    /// The metadata of `held`, whose body this is.
    pub(super) fn meta(&self, held: &Arc<Held>) -> Option<Meta> {
        match &mut *self.lock() {
            Decoded::Kept { object, used } => {
                *used = true;
                return Some(Meta(Metadata::Whole(Arc::clone(object))));
            }
            Decoded::Metadata { meta, used } => {
                *used = true;
                return Some(Meta(Metadata::Alone(Arc::clone(meta))));
            }
            Decoded::Not | Decoded::Never => {}
        }
        let meta = Arc::new(self.view::<OnlyMetadata>(&held.key)?.metadata);
        self.keep(held, Decoded::Metadata { meta: Arc::clone(&meta), used: true });
        Some(Meta(Metadata::Alone(meta)))
    }

    /// Keeps what was decoded for as long as it is recently used.
    fn keep(&self, held: &Arc<Held>, what: Decoded) {
        if !self.shared.recent.keeps(1) {
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
            self.shared.recent.keep(held);
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

    /// The object as one of its type.
    fn read_whole(&self) -> serde_json::Result<Arc<dyn ErasedObject>> {
        let codec = self.shared.codec;
        self.shared.dictionary.with_decoded(&self.encoded, |json| codec.decode_bytes(json))
    }

    fn give_up(&self, key: &ObjectKey, error: &serde_json::Error) {
        *self.lock() = Decoded::Never;
        self.shared.undecodable.fetch_add(1, Ordering::Relaxed);
        if let Some(requests) = self.shared.rereads.get() {
            let _ = requests.try_send(key.clone()); // if it is full, it comes with its next change
        }
        let kind = self.shared.codec.type_name;
        tracing::error!(kind, %key, %error, "object cannot be decoded and is skipped");
    }
}

#[derive(Deserialize)]
struct OnlyMetadata {
    #[serde(default)]
    metadata: ObjectMeta,
}
