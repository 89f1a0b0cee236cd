//! Keys that are wanted later, by when they are due.
//!
//! A heap of tickets. What is no longer wanted, or wanted sooner, stays in it as a stale ticket
//! until it comes up or until half of the heap is stale.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slots::Ticket;
use crate::workqueue::time::Tick;

/// So few stale tickets are not worth a sweep.
const TOLERATED: usize = 64;

/// A heap without keys keeps no more room than this.
const KEPT: usize = 1024;

/// A ticket and when it is due; ordered by that, then by the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: Tick,
    ticket: Ticket,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.ticket.stamp).cmp(&(other.at, other.ticket.stamp))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The heap of what is due later.
#[derive(Debug, Default)]
pub(super) struct Delays {
    heap: BinaryHeap<Reverse<Due>>,
    /// How many tickets are not stale: one for each delayed key.
    live: usize,
}

impl Delays {
    pub(super) fn push(&mut self, at: Tick, ticket: Ticket, valid: impl Fn(Ticket) -> bool) {
        self.heap.push(Reverse(Due { at, ticket }));
        self.live += 1;
        if self.heap.len() > 2 * self.live + TOLERATED {
            self.heap.retain(|Reverse(due)| valid(due.ticket));
        }
    }

    /// Notes that a ticket has become stale, or was taken out.
    pub(super) fn forget_one(&mut self) {
        self.live -= 1;
        if self.live == 0 {
            self.heap.clear(); // stale, all of it
            self.heap.shrink_to(KEPT);
        }
    }

    /// Whether no key is delayed.
    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Exchanges all tickets, drops those that are stale, and frees what they occupied.
    pub(super) fn renew(&mut self, renewed: impl Fn(Ticket) -> Option<Ticket>) {
        let mut tickets = std::mem::take(&mut self.heap).into_vec();
        tickets.retain_mut(|Reverse(due)| match renewed(due.ticket) {
            Some(ticket) => {
                due.ticket = ticket;
                true
            }
            None => false,
        });
        tickets.shrink_to(2 * tickets.len());
        self.heap = tickets.into();
    }

    /// When the next valid ticket is due; drops the stale ones before it.
    pub(super) fn next(&mut self, valid: impl Fn(Ticket) -> bool) -> Option<Tick> {
        while let Some(Reverse(due)) = self.heap.peek() {
            if valid(due.ticket) {
                return Some(due.at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes out the next ticket that is due, stale or not.
    pub(super) fn pop_due(&mut self, now: Tick) -> Option<Ticket> {
        let Reverse(due) = self.heap.peek()?;
        if due.at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due.ticket)
    }

    /// How many tickets there are, stale ones included.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// How many tickets there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.heap.capacity()
    }
}
