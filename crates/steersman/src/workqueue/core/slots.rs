//! Every key that the queue knows, once, with all there is to know about it.

use std::num::NonZeroU64;

use hashbrown::HashTable;

use super::{Running, Wanted};
use crate::workqueue::Hashed;

/// One key. It has a slot as long as it is wanted or worked on.
#[derive(Debug)]
pub(super) struct Slot<T> {
    pub(super) key: T,
    pub(super) group: u64,
    pub(super) wanted: Option<Wanted>,
    pub(super) running: Option<Running>,
    hash: u64,
}

/// What lanes and delays hold instead of a key: where it stands, and for which of its wants.
/// Stale as soon as the slot's want has another stamp, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) slot: u32,
    pub(super) stamp: NonZeroU64,
}

/// The number of no slot.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A slab of slots and the one hash table that finds them.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Option<Slot<T>>>,
    free: Vec<u32>,
    table: HashTable<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), table: HashTable::new() }
    }
}

impl<T: Eq> Slots<T> {
    #[inline]
    pub(super) fn find(&self, key: &T, hash: u64) -> Option<u32> {
        let is_it = |id: &u32| self.get(*id).is_some_and(|slot| slot.key == *key);
        self.table.find(hash, is_it).copied()
    }

    /// The slot of a key, made if it had none; gives the key back if it had one.
    pub(super) fn find_or_insert(&mut self, hashed: Hashed<T>) -> (u32, Option<T>) {
        if let Some(id) = self.find(&hashed.key, hashed.hash) {
            return (id, Some(hashed.key));
        }
        let Hashed { key, hash, group } = hashed;
        let slot = Some(Slot { key, group, wanted: None, running: None, hash });
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("four billion keys do not fit in memory")
            }
        };
        self.enter_table(id, hash);
        (id, None)
    }

    /// Removes a slot that is neither wanted nor worked on, and gives its key back.
    #[inline]
    pub(super) fn remove_if_idle(&mut self, id: u32) -> Option<T> {
        let place = self.slots.get_mut(id as usize)?;
        let slot = place.take_if(|slot| slot.wanted.is_none() && slot.running.is_none())?;
        if let Ok(entry) = self.table.find_entry(slot.hash, |other| *other == id) {
            entry.remove();
        }
        self.free.push(id);
        Some(slot.key)
    }
}

impl<T> Slots<T> {
    fn enter_table(&mut self, id: u32, hash: u64) {
        let slots = &self.slots;
        let hash_of = |id: &u32| slots[*id as usize].as_ref().map_or(0, |slot| slot.hash);
        self.table.insert_unique(hash, id, hash_of);
    }

    /// Moves the slots together and frees the rest. Tells where each has gone; those that were
    /// free are [`NOWHERE`].
    pub(super) fn compact(&mut self) -> Vec<u32> {
        let mut moved = Vec::with_capacity(self.slots.len());
        let mut next = 0;
        let old = std::mem::take(self);
        self.slots.reserve_exact(2 * old.len());
        self.table = HashTable::with_capacity(2 * old.len());
        for slot in old.slots {
            let Some(slot) = slot else {
                moved.push(NOWHERE);
                continue;
            };
            let hash = slot.hash;
            self.slots.push(Some(slot));
            self.enter_table(next, hash);
            moved.push(next);
            next += 1;
        }
        moved
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&Slot<T>> {
        self.slots.get(id as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Slot<T>> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    /// The slot that a ticket stands for, unless the ticket is stale.
    #[inline]
    pub(super) fn of(&self, ticket: Ticket) -> Option<&Slot<T>> {
        let wanted_now = |slot: &&Slot<T>| slot.wanted.is_some_and(|w| w.stamp == ticket.stamp);
        self.get(ticket.slot).filter(wanted_now)
    }

    /// How many keys have a slot.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// How many slots there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<T>> {
        self.slots.iter().flatten()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + use<T> {
        0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }
}
