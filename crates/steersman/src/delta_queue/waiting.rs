//! What waits in a queue, and where each object's latest event is.
//!
//! Events lie in a map by the order of their arrival, so that a merged event takes the place of
//! its earlier half and one that cancelled out leaves no gap. Where each object's latest event
//! is, is only known while there are enough events to merge: below the threshold a push costs
//! no look-up.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use tokio::time::Instant;

use super::{Coalesce, Merged, Sweep};
use crate::object::ObjectKey;

/// Entries of the index that point to nothing are tolerated up to this number.
const STALE_MAX: usize = 64;

/// The place of an event in the order of arrival; never used twice.
type Place = u64;

struct Slot<E> {
    event: E,
    since: Instant,
    /// The same object's event before this one, if it was known when this one came.
    before: Option<Place>,
}

pub(super) struct Waiting<E> {
    slots: BTreeMap<Place, Slot<E>>,
    next: Place,
    threshold: usize,
    /// `Some` from the moment the threshold is reached until the queue is empty.
    latest: Option<Latest>,
    /// Nothing more is taken in.
    pub(super) closed: bool,
}

/// Where to find what a new event can be merged with.
#[derive(Default)]
struct Latest {
    /// Each object's latest event since the last barrier. May point to what was taken already.
    of_key: HashMap<ObjectKey, Place>,
    mark: Option<Place>,
}

impl<E> Waiting<E> {
    pub(super) fn new(threshold: usize) -> Self {
        Self { slots: BTreeMap::new(), next: 0, threshold, latest: None, closed: false }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Since when the oldest event has been waiting.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.slots.first_key_value().map(|(_, slot)| slot.since)
    }

    pub(super) fn pop_batch(&mut self, max: usize) -> Vec<E> {
        let mut batch = Vec::with_capacity(max.min(self.slots.len()));
        while batch.len() < max
            && let Some((_, slot)) = self.slots.pop_first()
        {
            batch.push(slot.event);
        }
        if self.slots.is_empty() {
            self.latest = None;
        }
        batch
    }

    fn append(&mut self, event: E, since: Instant, before: Option<Place>) -> Place {
        let place = self.next;
        self.next += 1;
        self.slots.insert(place, Slot { event, since, before });
        place
    }
}

impl<E: Coalesce> Waiting<E> {
    /// Adds an event; returns how many were merged away.
    pub(super) fn push(&mut self, event: E, now: Instant) -> u64 {
        if self.latest.is_none() {
            if self.slots.len() < self.threshold {
                self.append(event, now, None);
                return 0;
            }
            self.latest = Some(self.find_latest());
        }
        let before = self.slots.len();
        match (event.key(), event.sweep()) {
            (Some(key), _) => self.push_keyed(key, event, now),
            (None, sweep) => self.push_sweep(sweep, event, now),
        }
        let merged = (before + 1).saturating_sub(self.slots.len());
        u64::try_from(merged).unwrap_or(u64::MAX)
    }

    fn push_keyed(&mut self, key: ObjectKey, event: E, now: Instant) {
        let known = self.latest.as_ref().and_then(|latest| latest.of_key.get(&key).copied());
        let taken = known.and_then(|place| Some((place, self.slots.remove(&place)?)));
        let place = match taken {
            None => Some(self.append(event, now, None)),
            Some((place, slot)) => self.put_back(place, slot, event, now),
        };
        let Some(latest) = &mut self.latest else { return };
        match place {
            Some(place) => latest.of_key.insert(key, place),
            None => latest.of_key.remove(&key),
        };
        if latest.of_key.len() > self.slots.len() * 2 + STALE_MAX {
            latest.of_key.retain(|_, place| self.slots.contains_key(place));
        }
    }

    /// Merges a new event into the slot taken from `place`; returns where the object's latest
    /// event now is.
    fn put_back(&mut self, place: Place, slot: Slot<E>, event: E, now: Instant) -> Option<Place> {
        let Slot { event: earlier, since, before } = slot;
        match E::merge(earlier, event) {
            Merged::Nothing => before.filter(|place| self.slots.contains_key(place)),
            Merged::One(event) => self.settle(place, Slot { event, since, before }),
            Merged::Both(earlier, later) => {
                self.slots.insert(place, Slot { event: earlier, since, before });
                Some(self.append(later, now, Some(place)))
            }
        }
    }

    /// Puts a merged event back. It may have become mergeable with the one before it: a deletion
    /// that swallowed an addition meets the deletion before.
    fn settle(&mut self, place: Place, slot: Slot<E>) -> Option<Place> {
        let earlier = slot.before.and_then(|place| Some((place, self.slots.remove(&place)?)));
        let Some((earlier_place, earlier)) = earlier else {
            self.slots.insert(place, slot);
            return Some(place);
        };
        let Slot { event, since, before } = earlier;
        match E::merge(event, slot.event) {
            Merged::Nothing => before.filter(|place| self.slots.contains_key(place)),
            Merged::One(event) => self.settle(earlier_place, Slot { event, since, before }),
            Merged::Both(first, second) => {
                self.slots.insert(earlier_place, Slot { event: first, since, before });
                let before = Some(earlier_place);
                self.slots.insert(place, Slot { event: second, since: slot.since, before });
                Some(place)
            }
        }
    }

    fn push_sweep(&mut self, sweep: Sweep, event: E, now: Instant) {
        if sweep == Sweep::Reset {
            self.slots.clear();
        }
        let place = self.append(event, now, None);
        let Some(latest) = &mut self.latest else { return };
        if sweep == Sweep::Mark {
            if let Some(earlier) = latest.mark.replace(place) {
                self.slots.remove(&earlier);
            }
        } else {
            *latest = Latest::default();
        }
    }

    /// Reads what waits already; done once per overload.
    fn find_latest(&self) -> Latest {
        let mut latest = Latest::default();
        for (place, slot) in &self.slots {
            match (slot.event.key(), slot.event.sweep()) {
                (Some(key), _) => {
                    latest.of_key.insert(key, *place);
                }
                (None, Sweep::Mark) => latest.mark = Some(*place),
                (None, _) => latest = Latest::default(),
            }
        }
        latest
    }
}
