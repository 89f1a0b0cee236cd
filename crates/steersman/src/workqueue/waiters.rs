//! Tasks that wait for a key, or for the end.
//!
//! One rule keeps keys and workers together: after every step, as many waiters have been woken
//! and not yet come as there are ready keys, unless nobody waits. One waiter at most is the
//! timekeeper, who sleeps until the next delayed key is due; the others sleep until woken.

use std::collections::BTreeMap;
use std::task::Waker;

use super::Key;
use super::core::{Core, Phase};
use super::time::Tick;

/// Names a waiter.
pub(super) type WaiterId = u64;

/// The waiting tasks of one queue.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Workers without a key. Woken ones have been taken out.
    workers: BTreeMap<WaiterId, Waker>,
    /// How many workers were woken and have not yet come to look, nor gone away.
    on_their_way: usize,
    /// The worker that sleeps until a delayed key is due, and until when.
    timekeeper: Option<(WaiterId, Tick)>,
    /// Those who wait for the last key to be done.
    drains: BTreeMap<WaiterId, Waker>,
    last_id: WaiterId,
}

/// Wakers to call once the lock is free.
#[must_use = "the tasks must be woken"]
#[derive(Debug, Default)]
pub(super) struct Wakes(Vec<Waker>);

impl Wakes {
    #[inline]
    pub(super) fn wake(self) {
        for waker in self.0 {
            waker.wake();
        }
    }
}

impl Waiters {
    pub(super) fn new_id(&mut self) -> WaiterId {
        self.last_id += 1;
        self.last_id
    }

    /// Lets a worker wait. Tells until when it must sleep if it is the timekeeper.
    pub(super) fn wait(&mut self, id: WaiterId, waker: &Waker, due: Option<Tick>) -> Option<Tick> {
        self.workers.insert(id, waker.clone());
        let due = due.filter(|due| self.timekeeper.is_none_or(|(_, until)| *due < until))?;
        self.timekeeper = Some((id, due));
        Some(due)
    }

    /// A worker that waited has come to look, or went away.
    pub(super) fn came(&mut self, id: WaiterId) {
        if self.workers.remove(&id).is_none() {
            self.on_their_way -= 1;
        }
        self.timekeeper.take_if(|(keeper, _)| *keeper == id);
    }

    pub(super) fn wait_for_drain(&mut self, id: WaiterId, waker: &Waker) {
        self.drains.insert(id, waker.clone());
    }

    pub(super) fn left_drain(&mut self, id: WaiterId) {
        self.drains.remove(&id);
    }

    /// Takes out whoever must be woken now; to be called after every change of the core.
    #[inline]
    pub(super) fn rouse<T: Key>(&mut self, core: &mut Core<T>) -> Wakes {
        let mut wakes = Wakes::default();
        if !self.workers.is_empty() {
            self.rouse_workers(core, &mut wakes);
        }
        if core.phase() != Phase::Open {
            self.rouse_at_the_end(core, &mut wakes);
        }
        wakes
    }

    fn rouse_workers<T: Key>(&mut self, core: &mut Core<T>, wakes: &mut Wakes) {
        while self.on_their_way < core.ready() && self.call_worker(wakes) {}
        if self.on_their_way > 0 {
            return; // whoever comes sees to the delays as well
        }
        let Some(due) = core.next_due() else { return };
        match self.timekeeper {
            Some((_, until)) if until <= due => {}
            Some((keeper, _)) => self.call(keeper, wakes),
            None => _ = self.call_worker(wakes),
        }
    }

    fn rouse_at_the_end<T: Key>(&mut self, core: &Core<T>, wakes: &mut Wakes) {
        if core.has_ended() {
            while self.call_worker(wakes) {}
        }
        if core.is_drained() {
            wakes.0.extend(std::mem::take(&mut self.drains).into_values());
        }
    }

    /// Calls the worker that waits the shortest: its memory is warm, and it is rarely the
    /// timekeeper.
    fn call_worker(&mut self, wakes: &mut Wakes) -> bool {
        let Some((id, waker)) = self.workers.pop_last() else { return false };
        self.called(id, waker, wakes);
        true
    }

    fn call(&mut self, id: WaiterId, wakes: &mut Wakes) {
        if let Some(waker) = self.workers.remove(&id) {
            self.called(id, waker, wakes);
        }
    }

    fn called(&mut self, id: WaiterId, waker: Waker, wakes: &mut Wakes) {
        self.timekeeper.take_if(|(keeper, _)| *keeper == id);
        self.on_their_way += 1;
        wakes.0.push(waker);
    }
}
