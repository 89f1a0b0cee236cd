//! Secondary indexes of a cache: by owner, by label, and by what the author chooses.
//!
//! The author's functions run before the cache is locked; under the lock only the values they
//! gave are filed. A posting holds pointers to items, ordered by key, and its copies share
//! structure: an answer is taken out in one step and read while the writer goes on.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use imbl::OrdSet;

use super::item::{ByKey, Item, Untyped};
use crate::object::{Cacheable, ErasedObject, ObjectKey};

/// Items, ordered by key.
pub(super) type Items = OrdSet<ByKey>;

/// Gives the values under which an object is found.
type IndexFn = Arc<dyn Fn(&dyn ErasedObject) -> Vec<Box<str>> + Send + Sync>;

/// The same for what needs no decoding.
type AtHand = fn(&Item<Untyped>) -> Vec<Box<str>>;

/// What an index can be searched by.
pub trait IndexValue {
    /// The value as text; equal values have equal texts.
    fn text(&self) -> Cow<'_, str>;
}

impl IndexValue for str {
    fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl IndexValue for String {
    fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

/// An index of the author's, without the type of its objects.
pub(crate) struct NamedIndex {
    name: Arc<str>,
    values: IndexFn,
    /// Of which type the author's function is: another one under the same name is a mistake.
    function: TypeId,
}

impl NamedIndex {
    /// An index by the values that the function gives.
    pub(crate) fn new<K: Cacheable, V: IndexValue, I: IntoIterator<Item = V>, F>(
        name: Arc<str>,
        values: F,
    ) -> Self
    where
        F: Fn(&K) -> I + Send + Sync + 'static,
    {
        let texts = move |object: &dyn ErasedObject| {
            let object: &dyn Any = object;
            let Some(object) = object.downcast_ref() else { return Vec::new() };
            values(object).into_iter().map(|value| value.text().into()).collect()
        };
        Self { name, values: Arc::new(texts), function: TypeId::of::<F>() }
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        *self.name == *name
    }
}

macro_rules! index_values {
    ($($kind:ty),*) => {
        $(impl IndexValue for $kind {
            fn text(&self) -> Cow<'_, str> {
                Cow::Owned(self.to_string())
            }
        })*
    };
}

index_values!(ObjectKey, bool, i32, i64, u16, u32, u64);

/// Every index has a name. Those of the cache itself begin with what no author writes.
pub(super) const BY_OWNER: &str = "\0owner";
/// Under `name=value` and under `name` alone.
pub(super) const BY_LABEL: &str = "\0label";

/// The indexes that a cache has, and how each finds the values of an object. A cache's list
/// only grows, and each entry keeps its place.
pub(super) struct Indexers(Vec<(Arc<str>, Indexer)>);

enum Indexer {
    /// Derived from what is at hand, so it can be computed again when an object goes.
    AtHand(AtHand),
    /// The author's, and of which type the function is: what it gave is remembered beside the
    /// object.
    Authors(IndexFn, TypeId),
}

impl Clone for Indexers {
    fn clone(&self) -> Self {
        let copy = |(name, indexer): &(Arc<str>, Indexer)| {
            let indexer = match indexer {
                Indexer::AtHand(values) => Indexer::AtHand(*values),
                Indexer::Authors(values, id) => Indexer::Authors(Arc::clone(values), *id),
            };
            (Arc::clone(name), indexer)
        };
        Self(self.0.iter().map(copy).collect())
    }
}

/// The values that the author's functions gave for one object, by the place of the index.
pub(super) type Values = Box<[(usize, Vec<Box<str>>)]>;

impl Indexers {
    /// The one index that every cache has.
    pub(super) fn new() -> Self {
        Self(vec![(BY_OWNER.into(), Indexer::AtHand(owners))])
    }

    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(existing, _)| **existing == *name)
    }

    /// Whether there is an index of that name with another function.
    pub(super) fn contradict(&self, index: &NamedIndex) -> bool {
        let known = self.place(&index.name).and_then(|place| self.0.get(place));
        matches!(known, Some((_, Indexer::Authors(_, function))) if *function != index.function)
    }

    pub(super) fn with_labels(mut self) -> Self {
        self.0.push((BY_LABEL.into(), Indexer::AtHand(labels)));
        self
    }

    /// The same and an index of the author's.
    pub(super) fn with(mut self, index: NamedIndex) -> Self {
        let NamedIndex { name, values, function } = index;
        self.0.push((name, Indexer::Authors(values, function)));
        self
    }

    /// What the author's functions give for an object, which is decoded once for all of them.
    pub(super) fn authors_values(&self, item: &Item<Untyped>) -> Values {
        if !(0..self.0.len()).any(|place| self.is_authors(place)) {
            return Values::default();
        }
        let Some(object) = item.held().object_in_passing() else { return Values::default() };
        let values = self.0.iter().enumerate().filter_map(|(place, (name, indexer))| {
            let Indexer::Authors(function, _) = indexer else { return None };
            Some((place, values_of(name, function, &*object)))
        });
        values.collect()
    }

    /// What one index gives for an object.
    pub(super) fn values_at(&self, place: usize, item: &Item<Untyped>) -> Vec<Box<str>> {
        match self.0.get(place) {
            Some((_, Indexer::AtHand(values))) => values(item),
            Some((name, Indexer::Authors(function, _))) => item
                .held()
                .object_in_passing()
                .map(|object| values_of(name, function, &*object))
                .unwrap_or_default(),
            None => Vec::new(),
        }
    }

    /// Whether the values of the index at this place are remembered beside the object.
    pub(super) fn is_authors(&self, place: usize) -> bool {
        matches!(self.0.get(place), Some((_, Indexer::Authors(..))))
    }

    fn at_hand(&self) -> impl Iterator<Item = (usize, AtHand)> {
        self.0.iter().enumerate().filter_map(|(place, (_, indexer))| match indexer {
            Indexer::AtHand(values) => Some((place, *values)),
            Indexer::Authors(..) => None,
        })
    }
}

/// What an index function gives; one that panics gives nothing.
fn values_of(name: &str, values: &IndexFn, object: &dyn ErasedObject) -> Vec<Box<str>> {
    catch_unwind(AssertUnwindSafe(|| values(object))).unwrap_or_else(|_| {
        tracing::error!(index = name, "index function panicked; the object is not indexed");
        Vec::new()
    })
}

fn owners(item: &Item<Untyped>) -> Vec<Box<str>> {
    item.held().owner_uids().into_iter().map(Into::into).collect()
}

fn labels(item: &Item<Untyped>) -> Vec<Box<str>> {
    let labels = item.labels();
    let both = labels.iter().map(|(name, value)| label_text(name, value));
    both.chain(labels.iter().map(|(name, _)| (*name).into())).collect()
}

/// Under what an object with this label is found.
pub(super) fn label_text(name: &str, value: &str) -> Box<str> {
    [name, "=", value].concat().into()
}

/// Where objects are found, index by index, in the order of the [`Indexers`].
pub(super) struct Indexes(Vec<HashMap<Box<str>, Posting>>);

/// What is found under one value; many values have one object only.
enum Posting {
    One(Item<Untyped>),
    Many(Items),
}

impl Indexes {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Files an object under everything.
    pub(super) fn insert(&mut self, indexers: &Indexers, item: &Item<Untyped>, values: &Values) {
        for (place, at_hand) in indexers.at_hand() {
            self.insert_at(place, item, &at_hand(item));
        }
        for (place, values) in values {
            self.insert_at(*place, item, values);
        }
    }

    /// Files an object in one index.
    pub(super) fn insert_at(&mut self, place: usize, item: &Item<Untyped>, values: &[Box<str>]) {
        if self.0.len() <= place {
            self.0.resize_with(place + 1, HashMap::new);
        }
        let Some(index) = self.0.get_mut(place) else { return };
        for value in values {
            match index.get_mut(value) {
                Some(posting) => posting.insert(item),
                None => _ = index.insert(value.clone(), Posting::One(item.clone())),
            }
        }
    }

    /// Takes an object out of everything. Values without objects go too, so that an index does
    /// not outgrow what it indexes.
    pub(super) fn remove(&mut self, indexers: &Indexers, item: &Item<Untyped>, values: &Values) {
        for (place, at_hand) in indexers.at_hand() {
            self.remove_at(place, item, &at_hand(item));
        }
        for (place, values) in values {
            self.remove_at(*place, item, values);
        }
    }

    fn remove_at(&mut self, place: usize, item: &Item<Untyped>, values: &[Box<str>]) {
        let Some(index) = self.0.get_mut(place) else { return };
        for value in values {
            if index.get_mut(value).is_some_and(|posting| posting.remove(item)) {
                index.remove(value);
            }
        }
        if index.capacity() > 64 && index.len() * 4 < index.capacity() {
            index.shrink_to(index.len() * 2);
        }
    }

    /// What one index has under a value.
    pub(super) fn at(&self, place: usize, value: &str) -> Items {
        match self.0.get(place).and_then(|index| index.get(value)) {
            Some(Posting::One(item)) => OrdSet::unit(ByKey(item.clone())),
            Some(Posting::Many(items)) => items.clone(),
            None => OrdSet::new(),
        }
    }

    /// The values of one index.
    pub(super) fn values(&self, place: usize) -> Vec<Box<str>> {
        self.0.get(place).map(|index| index.keys().cloned().collect()).unwrap_or_default()
    }
}

impl Posting {
    fn insert(&mut self, item: &Item<Untyped>) {
        match self {
            Self::One(only) if only.key() == item.key() => *only = item.clone(),
            Self::One(only) => {
                let items = [only.clone(), item.clone()].map(ByKey);
                *self = Self::Many(items.into_iter().collect());
            }
            Self::Many(items) => _ = items.insert(ByKey(item.clone())),
        }
    }

    /// Removes an object; true if nothing is left.
    fn remove(&mut self, item: &Item<Untyped>) -> bool {
        match self {
            Self::One(only) => only.key() == item.key(),
            Self::Many(items) => {
                items.remove(item.key());
                items.is_empty()
            }
        }
    }
}
