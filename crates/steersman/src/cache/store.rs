//! What a cache holds, and how it is found.

use std::ops::Bound;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use imbl::OrdSet;
use std::hash::BuildHasher;

use super::Event;
use super::index::{Indexers, Indexes, Items, Values};
use super::item::{ByKey, Item, Untyped};
use crate::object::ObjectKey;

/// The objects and their indexes.
pub(super) struct Store {
    /// Replaced as a whole when an index is added, so that whoever computed values with an
    /// older list notices.
    pub(super) indexers: Arc<Indexers>,
    /// How many of them, from the first on, have every object. Indexes are added one by one.
    pub(super) filled: usize,
    /// For single look-ups.
    by_key: HashTable<Entry>,
    hasher: DefaultHashBuilder,
    /// How many bytes the objects are.
    bytes: u64,
    /// The same objects, ordered by namespace and name: a namespace is a contiguous range.
    ordered: Items,
    /// Covers exactly the objects above.
    indexes: Indexes,
}

struct Entry {
    item: Item<Untyped>,
    values: Values,
}

/// An object on its way into the cache, with what the author's index functions say of it.
pub(super) struct Incoming {
    pub(super) item: Item<Untyped>,
    pub(super) values: Values,
}

impl Store {
    pub(super) fn new() -> Self {
        Self {
            indexers: Arc::new(Indexers::new()),
            filled: 1,
            by_key: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            bytes: 0,
            ordered: OrdSet::new(),
            indexes: Indexes::new(),
        }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Item<Untyped>> {
        let hash = self.hasher.hash_one(key);
        Some(&self.by_key.find(hash, |entry| entry.item.key() == key)?.item)
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Every object. The copy shares structure with what is here, and stays as it is.
    pub(super) fn ordered(&self) -> Items {
        self.ordered.clone()
    }

    /// What an index has under a value; nothing if there is no such index.
    pub(super) fn indexed(&self, index: &str, value: &str) -> Items {
        let place = self.indexers.place(index);
        place.map(|place| self.indexes.at(place, value)).unwrap_or_default()
    }

    /// The values of an index.
    pub(super) fn index_values(&self, index: &str) -> Vec<Box<str>> {
        let place = self.indexers.place(index);
        place.map(|place| self.indexes.values(place)).unwrap_or_default()
    }

    /// Puts an object in. One in the version that is already there changes nothing; one that
    /// took the name of another is a deletion and an addition: the other's end was not seen.
    pub(super) fn insert(
        &mut self,
        incoming: Incoming,
        initial: bool,
        changes: &mut Vec<Event<Untyped>>,
    ) {
        let Incoming { item: new, values } = incoming;
        let object = new.clone();
        match self.get(new.key()).cloned() {
            Some(old) if old.same_version(&new) => return,
            Some(old) if old.uid() == new.uid() => {
                self.take(old.key());
                changes.push(Event::Updated { old, new: object });
            }
            Some(old) => {
                self.take(old.key());
                changes.push(Event::Deleted { object: old, final_state_unknown: true });
                changes.push(Event::Added { object, initial: false });
            }
            None => changes.push(Event::Added { object, initial }),
        }
        self.put(Entry { item: new, values });
    }

    /// Removes an object.
    pub(super) fn remove(
        &mut self,
        key: &ObjectKey,
        final_state_unknown: bool,
    ) -> Option<Event<Untyped>> {
        let object = self.take(key)?;
        Some(Event::Deleted { object, final_state_unknown })
    }

    /// Files an object in an index that it is not in yet, if it is still the one that is here.
    pub(super) fn file(&mut self, place: usize, item: &Item<Untyped>, values: Vec<Box<str>>) {
        let hash = self.hasher.hash_one(item.key());
        let Some(entry) = self.by_key.find_mut(hash, |entry| entry.item.is(item)) else { return };
        self.indexes.insert_at(place, item, &values);
        if self.indexers.is_authors(place) {
            let known = std::mem::take(&mut entry.values).into_vec();
            entry.values = known.into_iter().chain([(place, values)]).collect();
        }
    }

    fn put(&mut self, entry: Entry) {
        self.indexes.insert(&self.indexers, &entry.item, &entry.values);
        self.ordered.insert(ByKey(entry.item.clone()));
        self.bytes += entry.item.bytes();
        let Self { by_key, hasher, .. } = self;
        let hash = hasher.hash_one(entry.item.key());
        by_key.insert_unique(hash, entry, |entry| hasher.hash_one(entry.item.key()));
    }

    fn take(&mut self, key: &ObjectKey) -> Option<Item<Untyped>> {
        let Self { by_key, hasher, .. } = self;
        let found = by_key.find_entry(hasher.hash_one(key), |entry| entry.item.key() == key);
        let (Entry { item, values }, _) = found.ok()?.remove();
        if by_key.capacity() > 64 && by_key.len() * 4 < by_key.capacity() {
            by_key.shrink_to(by_key.len() * 2, |entry| hasher.hash_one(entry.item.key()));
        }
        self.ordered.remove(key);
        self.bytes -= item.bytes();
        self.indexes.remove(&self.indexers, &item, &values);
        Some(item)
    }
}

/// The part of a set that is in a namespace.
pub(super) fn in_namespace<'a>(
    items: &'a Items,
    namespace: &'a str,
) -> impl Iterator<Item = &'a Item<Untyped>> {
    let first = ObjectKey::namespaced(namespace, "");
    items
        .range::<_, ObjectKey>((Bound::Included(first), Bound::Unbounded))
        .map(|ByKey(item)| item)
        .take_while(move |item| item.key().namespace.as_deref() == Some(namespace))
}
