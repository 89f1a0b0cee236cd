//! The queue as pure state: which keys are wanted, when, how urgently, and which are worked on.
//!
//! No lock, no clock, no waiting: every step is given the time. One [slot](slots) per key says
//! all about it; [`lanes`] and [`delays`] order tickets that point to slots. Invariants: a key
//! is worked on by one worker at a time; a key that is wanted while it is worked on waits in
//! its slot alone until [`done`](Core::done); a key with nothing to say has no slot.

mod delays;
mod ending;
mod lanes;
mod line;
mod memory;
mod slots;

use std::num::NonZeroU64;
use std::time::Duration;

use delays::Delays;
pub(super) use ending::Phase;
use lanes::Lanes;
use line::Entry;
use slots::{Slot, Slots, Ticket};

use super::time::Tick;
use super::{Hashed, Key, Priority};

/// That a key is wanted, and from when on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Tells this want from earlier ones of the same key. Counts up, so it also tells which of
    /// two keys was added first.
    stamp: NonZeroU64,
    pub(super) priority: Priority,
    /// When it was added, if that matters, or when it is due.
    pub(super) at: Tick,
    /// Whether it is still in the delays.
    pub(super) later: bool,
}

/// That a key is worked on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) since: Tick,
    pub(super) priority: Priority,
    /// Where it stands in the list of running keys.
    place: u32,
}

/// What an add asks for, besides the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Must be known if the core [needs](Core::needs_time) it.
    pub(super) now: Tick,
    /// When the key is wanted; now if not said.
    pub(super) due: Option<Tick>,
    /// If not said: the one that the key waits with, or is worked on with.
    pub(super) priority: Option<Priority>,
}

/// A key for a worker.
#[derive(Debug)]
pub(super) struct Taken<T> {
    pub(super) key: T,
    pub(super) waited_since: Tick,
}

/// How the work on a key ended.
#[derive(Debug)]
pub(super) struct Done<T> {
    pub(super) running_since: Option<Tick>,
    /// The queue's own copy of the key, if it needs it no more; not to be dropped under the lock.
    pub(super) _spare: Option<T>,
}

/// The state of a queue.
#[derive(Debug)]
pub(super) struct Core<T> {
    slots: Slots<T>,
    lanes: Lanes,
    delays: Delays,
    /// The slots of the keys that are worked on.
    running: Vec<u32>,
    /// How many of those are wanted once more, now.
    again: usize,
    phase: Phase,
    last_stamp: NonZeroU64,
    /// How often a key became wanted now.
    pub(super) adds: u64,
}

impl<T: Key> Core<T> {
    /// An empty queue; `fair` if groups of keys take turns.
    pub(super) fn new(fair: bool) -> Self {
        Self {
            slots: Slots::default(),
            lanes: Lanes::new(fair),
            delays: Delays::default(),
            running: Vec::new(),
            again: 0,
            phase: Phase::Open,
            last_stamp: NonZeroU64::MIN,
            adds: 0,
        }
    }

    /// Whether an add has to tell the time. Most need not, and reading the clock is a good part
    /// of what an add costs: time matters only once something is due later, or once keys of
    /// different priority wait.
    pub(super) fn needs_time(&self, priority: Option<Priority>) -> bool {
        let normal = priority == Some(Priority::NORMAL);
        !normal || self.lanes.is_mixed() || self.has_delayed()
    }

    /// Notes that a key is wanted. Gives the key back if the queue has its own copy already.
    pub(super) fn add(&mut self, key: Hashed<T>, request: Request) -> Option<T> {
        if self.phase != Phase::Open {
            return Some(key.key);
        }
        self.advance(request.now);
        let (id, spare) = self.slots.find_or_insert(key);
        let slot = self.slots.get(id)?;
        let inherited = slot.wanted.map(|w| w.priority).or(slot.running.map(|r| r.priority));
        let priority = request.priority.or(inherited).unwrap_or_default();
        match (slot.wanted, request.due) {
            (None, None) => self.want_now(id, priority, request.now),
            (None, Some(due)) => self.want_later(id, priority, due),
            (Some(wanted), due) if wanted.later => self.hasten(id, priority, due, request.now),
            (Some(_), _) => self.raise(id, priority, request.now),
        }
        spare
    }

    /// Gives the next key out. Keys that are due by `now` count, so the time must be known if a
    /// key is [delayed](Self::has_delayed).
    pub(super) fn take(&mut self, now: Tick) -> Option<Taken<T>> {
        if self.phase == Phase::Stopped {
            return None;
        }
        self.advance(now);
        let slots = &self.slots;
        let ticket = self.lanes.pop(|ticket| slots.of(ticket).is_some())?;
        let slot = self.slots.get_mut(ticket.slot)?;
        let wanted = slot.wanted.take()?;
        let place = self.running.len() as u32; // slots are numbered with as much
        slot.running = Some(Running { since: now, priority: wanted.priority, place });
        self.running.push(ticket.slot);
        self.lanes.leave(wanted.priority);
        Some(Taken { key: slot.key.clone(), waited_since: wanted.at })
    }

    /// Ends the work on a key; if it is wanted again, it waits for a worker from now on.
    pub(super) fn done(&mut self, key: &T, hash: u64) -> Done<T> {
        let id = self.slots.find(key, hash);
        let slot = id.and_then(|id| self.slots.get_mut(id));
        let (Some(id), Some(running)) = (id, slot.and_then(|slot| slot.running.take())) else {
            return Done { running_since: None, _spare: None };
        };
        let place = running.place as usize;
        self.running.swap_remove(place);
        if let Some(moved) = self.running.get(place)
            && let Some(other) = self.slots.get_mut(*moved).and_then(|slot| slot.running.as_mut())
        {
            other.place = running.place;
        }
        if let Some(wanted) = self.slots.get(id).and_then(|slot| slot.wanted)
            && !wanted.later
        {
            self.again -= 1;
            self.enter_lane(id, wanted);
        }
        let spare = self.slots.remove_if_idle(id);
        if spare.is_some() {
            self.give_memory_back();
        }
        Done { running_since: Some(running.since), _spare: spare }
    }

    /// Makes keys ready that are due by `now`.
    pub(super) fn advance(&mut self, now: Tick) {
        if now == Tick::UNTIMED {
            return;
        }
        while let Some(ticket) = self.delays.pop_due(now) {
            let Some(wanted) = self.slots.of(ticket).and_then(|slot| slot.wanted) else {
                continue; // stale
            };
            self.delays.forget_one();
            self.want_now(ticket.slot, wanted.priority, wanted.at);
        }
    }

    /// Whether a key is wanted later, or is due and not yet made ready.
    pub(super) fn has_delayed(&self) -> bool {
        !self.delays.is_empty()
    }

    /// When the next delayed key is due.
    pub(super) fn next_due(&mut self) -> Option<Tick> {
        let slots = &self.slots;
        self.delays.next(|ticket| slots.of(ticket).is_some())
    }

    fn want_now(&mut self, id: u32, priority: Priority, at: Tick) {
        self.adds += 1;
        let wanted = self.want(id, Wanted { stamp: self.last_stamp, priority, at, later: false });
        if self.slots.get(id).is_some_and(|slot| slot.running.is_some()) {
            self.again += 1;
        } else {
            self.enter_lane(id, wanted);
        }
    }

    fn want_later(&mut self, id: u32, priority: Priority, due: Tick) {
        let wanted =
            self.want(id, Wanted { stamp: self.last_stamp, priority, at: due, later: true });
        let slots = &self.slots;
        let ticket = Ticket { slot: id, stamp: wanted.stamp };
        self.delays.push(due, ticket, |ticket| slots.of(ticket).is_some());
    }

    /// Replaces what is wanted of a key, under a new stamp: older tickets become stale.
    fn want(&mut self, id: u32, wanted: Wanted) -> Wanted {
        self.last_stamp = self.last_stamp.saturating_add(1);
        let wanted = Wanted { stamp: self.last_stamp, ..wanted };
        if let Some(slot) = self.slots.get_mut(id) {
            slot.wanted = Some(wanted);
        }
        wanted
    }

    /// A delayed key is asked for again: the earlier time and the higher priority count.
    fn hasten(&mut self, id: u32, priority: Priority, due: Option<Tick>, now: Tick) {
        let Some(wanted) = self.slots.get_mut(id).and_then(|slot| slot.wanted.as_mut()) else {
            return;
        };
        wanted.priority = wanted.priority.max(priority);
        let priority = wanted.priority;
        let before = wanted.at;
        match due {
            None => {
                self.delays.forget_one();
                self.want_now(id, priority, now);
            }
            Some(due) if due < before => {
                self.delays.forget_one();
                self.want_later(id, priority, due);
            }
            Some(_) => {}
        }
    }

    /// A key that is ready is asked for again: the higher priority counts. It enters the higher
    /// lane as well and keeps its place in the lower one, whichever comes first.
    fn raise(&mut self, id: u32, priority: Priority, now: Tick) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let running = slot.running.is_some();
        let Some(wanted) = slot.wanted.as_mut().filter(|wanted| wanted.priority < priority) else {
            return;
        };
        let before = std::mem::replace(&mut wanted.priority, priority);
        if running {
            // Only its slot knows of it; a priority that is not normal needs a time.
            wanted.at = wanted.at.known().unwrap_or(now);
            return;
        }
        let wanted = Wanted { at: now, ..*wanted };
        self.enter_lane(id, wanted);
        self.lanes.leave(before);
    }

    fn enter_lane(&mut self, id: u32, wanted: Wanted) {
        let Some(slot) = self.slots.get(id) else { return };
        let ticket = Ticket { slot: id, stamp: wanted.stamp };
        let slots = &self.slots;
        let entry = Entry { at: wanted.at, ticket };
        let valid = |ticket| slots.of(ticket).is_some();
        self.lanes.enter(wanted.priority, slot.group, entry, valid);
    }
}

impl<T: Key> Core<T> {
    /// How many keys a worker could take now.
    pub(super) fn ready(&self) -> usize {
        self.lanes.ready()
    }

    /// How many keys wait with each priority.
    pub(super) fn depths(&self) -> impl Iterator<Item = (Priority, usize)> {
        self.lanes.depths()
    }

    /// How long each key has been worked on.
    pub(super) fn working_times(&self, now: Tick) -> impl Iterator<Item = Duration> {
        let since = |id: &u32| self.slots.get(*id)?.running?.since.known();
        self.running.iter().filter_map(since).map(move |since| now.since(since))
    }

    /// When the work on a key began, if it is worked on; may be [`Tick::UNTIMED`].
    pub(super) fn running_since(&self, key: &T, hash: u64) -> Option<Tick> {
        let slot = self.slots.get(self.slots.find(key, hash)?)?;
        slot.running.map(|running| running.since)
    }

    /// All that is known about every key.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&T, Option<Wanted>, Option<Running>)> {
        self.slots.iter().map(|Slot { key, wanted, running, .. }| (key, *wanted, *running))
    }
}

impl Wanted {
    /// Orders keys that wait in the order in which they were added.
    pub(super) fn order(&self) -> u64 {
        self.stamp.get()
    }
}

#[cfg(test)]
mod tests;
