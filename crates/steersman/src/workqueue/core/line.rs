//! The order within one lane: first come, first served, or groups in turn.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::slots::Ticket;
use crate::workqueue::time::Tick;

/// An empty line keeps no more room than this.
const KEPT: usize = 1024;

/// A ticket and when its key was added, or [`Tick::UNTIMED`] where only
/// [`Priority::NORMAL`](crate::workqueue::Priority::NORMAL) was in use then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) at: Tick,
    pub(super) ticket: Ticket,
}

/// The keys of one priority, in order.
#[derive(Debug)]
pub(super) enum Line {
    /// First in, first out.
    Fifo(VecDeque<Entry>),
    /// One of each group in turn, first in, first out within the group.
    Fair(Box<RoundRobin>),
}

/// Groups of keys that take turns.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    /// The groups that have keys, each once; the first has its turn.
    turns: VecDeque<u64>,
    groups: HashMap<u64, VecDeque<Entry>>,
    len: usize,
}

impl Line {
    #[inline]
    pub(super) fn push(&mut self, group: u64, entry: Entry) {
        match self {
            Self::Fifo(queue) => queue.push_back(entry),
            Self::Fair(groups) => groups.push(group, entry),
        }
    }

    /// The next entry; drops the stale ones before it.
    #[inline]
    pub(super) fn head(&mut self, valid: impl Fn(Ticket) -> bool) -> Option<Entry> {
        match self {
            Self::Fifo(queue) => valid_front(queue, valid),
            Self::Fair(groups) => groups.head(valid),
        }
    }

    /// Takes out the entry that [`head`](Self::head) showed.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Entry> {
        match self {
            Self::Fifo(queue) => {
                let entry = queue.pop_front();
                if queue.is_empty() && queue.capacity() > KEPT {
                    *queue = VecDeque::new();
                }
                entry
            }
            Self::Fair(groups) => groups.pop(),
        }
    }

    /// Exchanges all tickets, drops those that are stale, and frees what they occupied.
    pub(super) fn renew(&mut self, renewed: impl Fn(Ticket) -> Option<Ticket>) {
        match self {
            Self::Fifo(queue) => renew_entries(queue, renewed),
            Self::Fair(groups) => groups.renew(renewed),
        }
    }

    /// How many entries there are, stale ones included.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::Fair(groups) => groups.len,
        }
    }

    /// How many entries there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.capacity(),
            Self::Fair(groups) => groups.groups.values().map(VecDeque::capacity).sum(),
        }
    }
}

impl RoundRobin {
    fn push(&mut self, group: u64, entry: Entry) {
        self.len += 1;
        let queue = self.groups.entry(group).or_default();
        if queue.is_empty() {
            self.turns.push_back(group);
        }
        queue.push_back(entry);
    }

    fn head(&mut self, valid: impl Fn(Ticket) -> bool) -> Option<Entry> {
        loop {
            let group = *self.turns.front()?;
            let queue = self.groups.entry(group).or_default();
            let before = queue.len();
            let head = valid_front(queue, &valid);
            self.len -= before - queue.len();
            if let Some(entry) = head {
                return Some(entry);
            }
            self.turns.pop_front();
            self.groups.remove(&group);
        }
    }

    fn pop(&mut self) -> Option<Entry> {
        let group = self.turns.pop_front()?;
        let queue = self.groups.get_mut(&group)?;
        let entry = queue.pop_front()?;
        self.len -= 1;
        if queue.is_empty() {
            self.groups.remove(&group);
        } else {
            self.turns.push_back(group);
        }
        Some(entry)
    }

    fn renew(&mut self, renewed: impl Fn(Ticket) -> Option<Ticket>) {
        self.groups.retain(|_, queue| {
            renew_entries(queue, &renewed);
            !queue.is_empty()
        });
        self.groups.shrink_to(2 * self.groups.len());
        self.turns.retain(|group| self.groups.contains_key(group));
        self.turns.shrink_to(2 * self.turns.len());
        self.len = self.groups.values().map(VecDeque::len).sum();
    }
}

fn renew_entries(queue: &mut VecDeque<Entry>, renewed: impl Fn(Ticket) -> Option<Ticket>) {
    queue.retain_mut(|entry| match renewed(entry.ticket) {
        Some(ticket) => {
            entry.ticket = ticket;
            true
        }
        None => false,
    });
    queue.shrink_to(2 * queue.len());
}

fn valid_front(queue: &mut VecDeque<Entry>, valid: impl Fn(Ticket) -> bool) -> Option<Entry> {
    while let Some(entry) = queue.front() {
        if valid(entry.ticket) {
            return Some(*entry);
        }
        queue.pop_front();
    }
    None
}
