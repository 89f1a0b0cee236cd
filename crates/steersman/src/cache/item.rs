//! One object as a cache holds it.
//!
//! What identifies it is always at hand: key, uid, version, labels, owners. The object itself
//! is there too in the typed form; in the compact form it is decoded when somebody asks, and
//! kept while it is among the recently used ones.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;

use super::compact::Packed;
use crate::object::{Cacheable, ObjectKey};

/// An object in a cache. Cheap to clone, and never changes: a new version is a new item.
pub struct Item<K>(pub(super) Arc<Inner<K>>);

pub(super) struct Inner<K> {
    pub(super) key: ObjectKey,
    pub(super) body: Body<K>,
}

/// In which form the object is held.
pub(super) enum Body<K> {
    /// With the length of the JSON that it came as, if it came as such.
    Typed(Arc<K>, u32),
    Compact(Packed<K>),
}

impl<K> Clone for Item<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Cacheable> Item<K> {
    /// An item in the typed form.
    pub fn typed(object: K) -> Self {
        Self::typed_of(object, 0)
    }

    /// The same, which came as so many bytes of JSON.
    pub(super) fn typed_of(object: K, json: usize) -> Self {
        let key = ObjectKey::of(&object);
        let json = u32::try_from(json).unwrap_or(u32::MAX);
        Self(Arc::new(Inner { key, body: Body::Typed(Arc::new(object), json) }))
    }

    /// How many bytes it is, as it is held; see [`Cache::bytes`](super::Cache::bytes).
    pub(super) fn bytes(&self) -> u64 {
        match &self.0.body {
            Body::Typed(_, json) => u64::from(*json),
            Body::Compact(packed) => packed.bytes(),
        }
    }

    /// Which object it is.
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// Tells this object from others of the same name.
    pub fn uid(&self) -> Option<&str> {
        match &self.0.body {
            Body::Typed(object, _) => object.meta().uid.as_deref(),
            Body::Compact(packed) => packed.uid(),
        }
    }

    /// Its version.
    pub fn resource_version(&self) -> Option<&str> {
        match &self.0.body {
            Body::Typed(object, _) => object.meta().resource_version.as_deref(),
            Body::Compact(packed) => packed.resource_version(),
        }
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        match &self.0.body {
            Body::Typed(object, _) => object.meta().labels.as_ref()?.get(name).map(String::as_str),
            Body::Compact(packed) => packed.label(name),
        }
    }

    /// Its labels.
    pub fn labels(&self) -> Vec<(&str, &str)> {
        match &self.0.body {
            Body::Typed(object, _) => {
                let labels = object.meta().labels.iter().flatten();
                labels.map(|(name, value)| (name.as_str(), value.as_str())).collect()
            }
            Body::Compact(packed) => packed.labels().collect(),
        }
    }

    /// The uids of its owners.
    pub(crate) fn owner_uids(&self) -> Vec<&str> {
        match &self.0.body {
            Body::Typed(object, _) => {
                let owners = object.meta().owner_references.iter().flatten();
                owners.map(|owner| owner.uid.as_str()).collect()
            }
            Body::Compact(packed) => packed.owner_uids().collect(),
        }
    }

    /// Whether it has owners.
    pub(crate) fn is_owned(&self) -> bool {
        match &self.0.body {
            Body::Typed(object, _) => {
                object.meta().owner_references.as_ref().is_some_and(|owners| !owners.is_empty())
            }
            Body::Compact(packed) => packed.owner_uids().next().is_some(),
        }
    }

    /// The object, or `None` if it turns out not to be one of its type: that is reported, and
    /// the others are not affected. In the compact form it is decoded unless it was used lately.
    pub fn object(&self) -> Option<Arc<K>> {
        match &self.0.body {
            Body::Typed(object, _) => Some(Arc::clone(object)),
            Body::Compact(packed) => packed.decode(self, true),
        }
    }

    /// Counts the object of a compact item, which is decoded already, among the recently used.
    pub(super) fn keep_decoded(&self, object: K) {
        if let Body::Compact(packed) = &self.0.body {
            packed.keep_object(self, Arc::new(object));
        }
    }

    /// The object, if it need not be decoded.
    pub(super) fn decoded(&self) -> Option<Arc<K>> {
        match &self.0.body {
            Body::Typed(object, _) => Some(Arc::clone(object)),
            Body::Compact(packed) => packed.decoded(),
        }
    }

    /// The object, without keeping it decoded for it: for passes over everything.
    pub(super) fn object_in_passing(&self) -> Option<Arc<K>> {
        match &self.0.body {
            Body::Typed(object, _) => Some(Arc::clone(object)),
            Body::Compact(packed) => packed.decode(self, false),
        }
    }

    /// Its metadata, without decoding the rest.
    pub fn meta(&self) -> Option<Meta<K>> {
        match &self.0.body {
            Body::Typed(object, _) => Some(Meta::Whole(Arc::clone(object))),
            Body::Compact(packed) => packed.meta(self),
        }
    }

    /// The object as the author's own slim type, which names only the fields that matter.
    /// In the compact form only those are decoded; an object that is held typed has no encoded
    /// form to decode from, and gives `None`.
    pub fn view<V: DeserializeOwned>(&self) -> Option<V> {
        match &self.0.body {
            Body::Typed(..) => None,
            Body::Compact(packed) => packed.view(self.key()),
        }
    }

    /// Whether both are the same object in the same version.
    pub(super) fn same_version(&self, other: &Self) -> bool {
        self.uid() == other.uid()
            && self.resource_version().is_some()
            && self.resource_version() == other.resource_version()
            && !self.is_unreadable()
    }

    /// Whether somebody tried to decode it, in vain. Then the same version may come better.
    fn is_unreadable(&self) -> bool {
        match &self.0.body {
            Body::Typed(..) => false,
            Body::Compact(packed) => packed.is_unreadable(),
        }
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<K> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({})", self.0.key)
    }
}

/// The metadata of an object, wherever it lies.
pub enum Meta<K> {
    /// Inside the object.
    Whole(Arc<K>),
    /// Decoded alone.
    Alone(Arc<ObjectMeta>),
}

impl<K: Cacheable> Deref for Meta<K> {
    type Target = ObjectMeta;

    fn deref(&self) -> &ObjectMeta {
        match self {
            Self::Whole(object) => object.meta(),
            Self::Alone(meta) => meta,
        }
    }
}

/// An item that stands in an order: that of its key. It is its key as far as comparing goes,
/// so that a set of items is searched by key and holds nothing but pointers.
pub(super) struct ByKey<K>(pub(super) Item<K>);

impl<K> Clone for ByKey<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Borrow<ObjectKey> for ByKey<K> {
    fn borrow(&self) -> &ObjectKey {
        &self.0.0.key
    }
}

impl<K> PartialEq for ByKey<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K> Eq for ByKey<K> {}

impl<K> PartialOrd for ByKey<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for ByKey<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.0.key.cmp(&other.0.0.key)
    }
}
