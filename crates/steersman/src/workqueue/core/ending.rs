//! How a queue ends: at once, or after what is ready and running is done.

use super::{Core, Wanted};
use crate::workqueue::Key;

/// Whether keys come in and go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workqueue) enum Phase {
    /// They do.
    Open,
    /// None comes in; what is ready still goes out.
    Draining,
    /// Neither.
    Stopped,
}

impl<T: Key> Core<T> {
    /// Lets nothing in any more, and forgets what is delayed; gives those keys back.
    pub(in crate::workqueue) fn drain(&mut self) -> Vec<T> {
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
        }
        self.drop_wanted(|wanted| wanted.later)
    }

    /// Lets nothing in or out any more, and forgets what waits; gives those keys back.
    pub(in crate::workqueue) fn stop(&mut self) -> Vec<T> {
        self.phase = Phase::Stopped;
        self.drop_wanted(|_| true)
    }

    fn drop_wanted(&mut self, which: impl Fn(&Wanted) -> bool) -> Vec<T> {
        let mut dropped = Vec::new();
        for id in self.slots.ids() {
            let Some(slot) = self.slots.get_mut(id) else { continue };
            let Some(wanted) = slot.wanted.take_if(|wanted| which(wanted)) else { continue };
            match (wanted.later, slot.running) {
                (true, _) => self.delays.forget_one(),
                (false, Some(_)) => self.again -= 1,
                (false, None) => self.lanes.leave(wanted.priority),
            }
            dropped.extend(self.slots.remove_if_idle(id));
        }
        self.give_memory_back();
        dropped
    }

    /// Whether no worker will ever get a key again.
    pub(in crate::workqueue) fn has_ended(&self) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Draining => self.ready() == 0 && self.again == 0,
            Phase::Stopped => true,
        }
    }

    /// Whether the queue is shut down and the last key is done.
    pub(in crate::workqueue) fn is_drained(&self) -> bool {
        self.has_ended() && self.running.is_empty()
    }

    pub(in crate::workqueue) fn phase(&self) -> Phase {
        self.phase
    }
}
