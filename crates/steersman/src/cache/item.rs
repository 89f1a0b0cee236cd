//! One object as a cache holds it.
//!
//! What identifies it is always at hand: key, uid, version, labels, owners. The object itself
//! is there too in the typed form; in the compact form it is decoded when somebody asks, and
//! kept while it is among the recently used ones.
//!
//! Inside of the cache all items are of one type, [`Held`]; an [`Item`] is one of them together
//! with the type that its reader wants.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;

use super::compact::Packed;
use crate::object::{Cacheable, ErasedObject, ObjectKey, downcast, version_of};

/// An object in a cache. Cheap to clone, and never changes: a new version is a new item.
pub struct Item<K> {
    held: Arc<Held>,
    object: PhantomData<fn() -> K>,
}

/// Stands for the type of an object where that does not matter: all of a cache but its edges.
pub(crate) enum Untyped {}

/// An object of any kind.
pub(super) struct Held {
    pub(super) key: ObjectKey,
    pub(super) body: Body,
}

/// In which form the object is held.
pub(super) enum Body {
    /// With the length of the JSON that it came as, if it came as such.
    Typed(Arc<dyn ErasedObject>, u32),
    Compact(Packed),
}

impl<K> Clone for Item<K> {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.held))
    }
}

impl<K> Item<K> {
    fn of(held: Arc<Held>) -> Self {
        Self { held, object: PhantomData }
    }

    /// The same item for readers of another type. Of the right one, as nobody checks it before
    /// the object is asked for: then another one gives nothing.
    pub(crate) fn cast<C>(self) -> Item<C> {
        Item::of(self.held)
    }

    pub(super) fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// Which object it is.
    pub fn key(&self) -> &ObjectKey {
        &self.held.key
    }

    /// Tells this object from others of the same name.
    pub fn uid(&self) -> Option<&str> {
        self.held.uid()
    }

    /// Its version.
    pub fn resource_version(&self) -> Option<&str> {
        self.held.resource_version()
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.held.label(name)
    }

    /// Its labels.
    pub fn labels(&self) -> Vec<(&str, &str)> {
        self.held.labels()
    }

    /// Whether it has owners.
    pub(crate) fn is_owned(&self) -> bool {
        self.held.is_owned()
    }

    /// Its metadata, without decoding the rest.
    pub fn meta(&self) -> Option<Meta> {
        self.held.meta()
    }

    /// The object as the author's own slim type, which names only the fields that matter.
    /// In the compact form only those are decoded; an object that is held typed has no encoded
    /// form to decode from, and gives `None`.
    pub fn view<V: DeserializeOwned>(&self) -> Option<V> {
        match &self.held.body {
            Body::Typed(..) => None,
            Body::Compact(packed) => packed.view(self.key()),
        }
    }
}

impl<K: Cacheable> Item<K> {
    /// An item in the typed form.
    pub fn typed(object: K) -> Self {
        Item::held_typed(Arc::new(object), 0).cast()
    }

    /// The object, or `None` if it turns out not to be one of its type: that is reported, and
    /// the others are not affected. In the compact form it is decoded unless it was used lately.
    pub fn object(&self) -> Option<Arc<K>> {
        downcast(self.held.object()?)
    }
}

impl Item<Untyped> {
    /// The object, as [`object`](Item::object) gives it.
    pub(crate) fn erased(&self) -> Option<Arc<dyn ErasedObject>> {
        self.held.object()
    }

    /// An item in the typed form, which came as so many bytes of JSON.
    pub(super) fn held_typed(object: Arc<dyn ErasedObject>, json: usize) -> Self {
        let key = ObjectKey::of_meta(object.metadata());
        let json = u32::try_from(json).unwrap_or(u32::MAX);
        Self::of(Arc::new(Held { key, body: Body::Typed(object, json) }))
    }

    /// An item in the compact form.
    pub(super) fn held_compact(key: ObjectKey, packed: Packed) -> Self {
        Self::of(Arc::new(Held { key, body: Body::Compact(packed) }))
    }

    /// How many bytes it is, as it is held; see [`Cache::bytes`](super::Cache::bytes).
    pub(super) fn bytes(&self) -> u64 {
        match &self.held.body {
            Body::Typed(_, json) => u64::from(*json),
            Body::Compact(packed) => packed.bytes(),
        }
    }

    /// Counts the object of a compact item, which is decoded already, among the recently used.
    pub(crate) fn keep_decoded(&self, object: Arc<dyn ErasedObject>) {
        if let Body::Compact(packed) = &self.held.body {
            packed.keep_object(&self.held, object);
        }
    }

    /// The object of a compact item, if it is decoded at this moment.
    pub(crate) fn decoded_if_compact(&self) -> Option<Arc<dyn ErasedObject>> {
        match &self.held.body {
            Body::Typed(..) => None,
            Body::Compact(packed) => packed.decoded(),
        }
    }

    /// Whether both are the same object in the same version.
    pub(super) fn same_version(&self, other: &Self) -> bool {
        self.uid() == other.uid()
            && self.resource_version().is_some()
            && self.resource_version() == other.resource_version()
            && !self.held.is_unreadable()
    }

    /// Whether this is certainly a later version than the other.
    pub(super) fn is_newer_than(&self, other: &Self) -> bool {
        let own = version_of(self.resource_version());
        let others = version_of(other.resource_version());
        matches!((own, others), (Some(own), Some(others)) if own > others)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.held, &other.held)
    }
}

impl Held {
    fn uid(&self) -> Option<&str> {
        match &self.body {
            Body::Typed(object, _) => object.metadata().uid.as_deref(),
            Body::Compact(packed) => packed.uid(),
        }
    }

    fn resource_version(&self) -> Option<&str> {
        match &self.body {
            Body::Typed(object, _) => object.metadata().resource_version.as_deref(),
            Body::Compact(packed) => packed.resource_version(),
        }
    }

    fn label(&self, name: &str) -> Option<&str> {
        match &self.body {
            Body::Typed(object, _) => {
                object.metadata().labels.as_ref()?.get(name).map(String::as_str)
            }
            Body::Compact(packed) => packed.label(name),
        }
    }

    fn labels(&self) -> Vec<(&str, &str)> {
        match &self.body {
            Body::Typed(object, _) => {
                let labels = object.metadata().labels.iter().flatten();
                labels.map(|(name, value)| (name.as_str(), value.as_str())).collect()
            }
            Body::Compact(packed) => packed.labels().collect(),
        }
    }

    /// The uids of its owners.
    pub(super) fn owner_uids(&self) -> Vec<&str> {
        match &self.body {
            Body::Typed(object, _) => {
                let owners = object.metadata().owner_references.iter().flatten();
                owners.map(|owner| owner.uid.as_str()).collect()
            }
            Body::Compact(packed) => packed.owner_uids().collect(),
        }
    }

    fn is_owned(&self) -> bool {
        match &self.body {
            Body::Typed(object, _) => {
                object.metadata().owner_references.as_ref().is_some_and(|owners| !owners.is_empty())
            }
            Body::Compact(packed) => packed.owner_uids().next().is_some(),
        }
    }

    /// The object as one of its type, which is kept decoded.
    pub(super) fn object(self: &Arc<Self>) -> Option<Arc<dyn ErasedObject>> {
        match &self.body {
            Body::Typed(object, _) => Some(Arc::clone(object)),
            Body::Compact(packed) => packed.decode(self, true),
        }
    }

    /// The object, if it need not be decoded.
    pub(super) fn decoded(&self) -> Option<Arc<dyn ErasedObject>> {
        match &self.body {
            Body::Typed(object, _) => Some(Arc::clone(object)),
            Body::Compact(packed) => packed.decoded(),
        }
    }

    /// Whether so many objects of its kind can be kept decoded at once.
    pub(super) fn keeps(&self, count: usize) -> bool {
        match &self.body {
            Body::Typed(..) => true,
            Body::Compact(packed) => packed.keeps(count),
        }
    }

    /// The object, without keeping it decoded for it: for passes over everything.
    pub(super) fn object_in_passing(self: &Arc<Self>) -> Option<Arc<dyn ErasedObject>> {
        match &self.body {
            Body::Typed(object, _) => Some(Arc::clone(object)),
            Body::Compact(packed) => packed.decode(self, false),
        }
    }

    fn meta(self: &Arc<Self>) -> Option<Meta> {
        match &self.body {
            Body::Typed(object, _) => Some(Meta(Metadata::Whole(Arc::clone(object)))),
            Body::Compact(packed) => packed.meta(self),
        }
    }

    /// Whether somebody tried to decode it, in vain. Then the same version may come better.
    fn is_unreadable(&self) -> bool {
        match &self.body {
            Body::Typed(..) => false,
            Body::Compact(packed) => packed.is_unreadable(),
        }
    }
}

impl<K> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({})", self.key())
    }
}

/// The metadata of an object, wherever it lies.
pub struct Meta(pub(super) Metadata);

pub(super) enum Metadata {
    /// Inside the object.
    Whole(Arc<dyn ErasedObject>),
    /// Decoded alone.
    Alone(Arc<ObjectMeta>),
}

impl Deref for Meta {
    type Target = ObjectMeta;

    fn deref(&self) -> &ObjectMeta {
        match &self.0 {
            Metadata::Whole(object) => object.metadata(),
            Metadata::Alone(meta) => meta,
        }
    }
}

/// An item that stands in an order: that of its key. It is its key as far as comparing goes,
/// so that a set of items is searched by key and holds nothing but pointers.
#[derive(Clone)]
pub(super) struct ByKey(pub(super) Item<Untyped>);

impl Borrow<ObjectKey> for ByKey {
    fn borrow(&self) -> &ObjectKey {
        self.0.key()
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}
