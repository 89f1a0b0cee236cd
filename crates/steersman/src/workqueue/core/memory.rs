//! Giving memory back after a flood, also if some keys stay for ever.
//!
//! When few slots of many are left, they move together, and all tickets with them. That takes
//! time in proportion to the keys that have gone since the last time, so each of them pays a
//! constant share; but the one that pays holds the lock meanwhile, some tens of milliseconds
//! after a flood of a million keys.

use super::Core;
use super::slots::{NOWHERE, Ticket};
use crate::workqueue::Key;

/// A queue with no more slots than this keeps them.
pub(super) const KEPT: usize = 4096;

/// Of so many slots one at least is in use.
const SPARSE: usize = 8;

impl<T: Key> Core<T> {
    /// To be called after slots were removed.
    #[inline]
    pub(super) fn give_memory_back(&mut self) {
        let room = self.slots.capacity();
        if room > KEPT && self.slots.len() < room / SPARSE {
            self.compact();
        }
    }

    #[cold]
    fn compact(&mut self) {
        let moved = self.slots.compact();
        let now_at = |id: u32| moved.get(id as usize).copied().unwrap_or(NOWHERE);
        for id in &mut self.running {
            *id = now_at(*id);
        }
        self.running.shrink_to(2 * self.running.len());
        let slots = &self.slots;
        let renewed = |ticket: Ticket| {
            let ticket = Ticket { slot: now_at(ticket.slot), ..ticket };
            slots.of(ticket).is_some().then_some(ticket)
        };
        self.lanes.renew(renewed);
        self.delays.renew(renewed);
    }
}
