//! Keys that a worker can take now: one lane per priority, each first in, first out.
//!
//! The lane whose head [ranks](Priority::rank) lowest gives the next key, so a lane that waits
//! gains on the others as time passes. Lanes hold tickets; stale ones are dropped when they
//! come to the head, or all at once when they are the greater part. Taking costs time in
//! proportion to the number of different priorities that wait, of which programs have few.

use std::collections::VecDeque;

use super::line::{Entry, Line};
use super::slots::Ticket;
use crate::workqueue::Priority;
use crate::workqueue::time::Tick;

/// So few stale tickets are not worth a sweep.
const TOLERATED: usize = 64;

#[derive(Debug)]
struct Lane {
    priority: Priority,
    line: Line,
    /// How many keys have this priority. Their tickets are in this line; a key whose priority
    /// was raised is counted in the higher lane, and its older ticket here still holds.
    live: usize,
    /// Sweep when the line has grown beyond this.
    sweep_at: usize,
}

/// The lanes, highest priority first. That of [`Priority::NORMAL`] is always there.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// How many keys wait in all lanes.
    ready: usize,
    /// Since when a key of another priority than the normal one is, or was, among those that
    /// wait; forgotten when nothing waits. What was not timed counts as added then, which must
    /// not change while it waits: it would not age.
    mixed_since: Option<Tick>,
    fair: bool,
}

impl Lanes {
    /// Lanes that take turns among groups if `fair`.
    pub(super) fn new(fair: bool) -> Self {
        let normal = Lane::new(Priority::NORMAL, fair);
        Self { lanes: vec![normal], ready: 0, mixed_since: None, fair }
    }

    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    /// Whether the order depends on when keys were added.
    pub(super) fn is_mixed(&self) -> bool {
        self.mixed_since.is_some()
    }

    /// How many keys wait in each lane.
    pub(super) fn depths(&self) -> impl Iterator<Item = (Priority, usize)> {
        self.lanes.iter().map(|lane| (lane.priority, lane.live))
    }

    /// Lets a key wait behind the others of its priority.
    pub(super) fn enter(
        &mut self,
        priority: Priority,
        group: u64,
        entry: Entry,
        valid: impl Fn(Ticket) -> bool,
    ) {
        self.ready += 1;
        if !self.is_mixed() && priority != Priority::NORMAL {
            // Such keys are timed; if one were not, the others would rather be too old.
            self.mixed_since = Some(entry.at.known().unwrap_or_default());
        }
        let lane = self.lane(priority);
        lane.live += 1;
        lane.line.push(group, entry);
        lane.sweep_if_mostly_stale(valid);
    }

    /// Notes that a key of this priority does not wait any more, or not with this priority; in
    /// the latter case it has [entered](Self::enter) another lane before.
    pub(super) fn leave(&mut self, priority: Priority) {
        self.ready -= 1;
        self.lane(priority).live -= 1;
        if self.ready == 0 {
            self.mixed_since = None;
        }
    }

    /// The next ticket that is valid. The caller says [`leave`](Self::leave) for its key.
    pub(super) fn pop(&mut self, valid: impl Fn(Ticket) -> bool) -> Option<Ticket> {
        let mut best: Option<(i64, usize)> = None;
        let untimed = self.mixed_since.unwrap_or_default();
        for (place, lane) in self.lanes.iter_mut().enumerate() {
            if let Some(head) = lane.line.head(&valid) {
                let rank = lane.priority.rank(head.at.known().unwrap_or(untimed));
                if best.is_none_or(|(lowest, _)| rank < lowest) {
                    best = Some((rank, place));
                }
            }
        }
        let entry = best.and_then(|(_, place)| self.lanes[place].line.pop());
        if self.lanes.len() > 1 {
            self.lanes.retain(Lane::is_kept);
        }
        entry.map(|entry| entry.ticket)
    }

    #[inline]
    fn lane(&mut self, priority: Priority) -> &mut Lane {
        if self.lanes[0].priority == priority {
            return &mut self.lanes[0]; // nearly always
        }
        let place = match self.lanes.binary_search_by(|lane| priority.cmp(&lane.priority)) {
            Ok(place) => place,
            Err(place) => {
                self.lanes.insert(place, Lane::new(priority, self.fair));
                place
            }
        };
        &mut self.lanes[place]
    }

    /// Exchanges all tickets, drops those that are stale, and frees what they occupied.
    pub(super) fn renew(&mut self, renewed: impl Fn(Ticket) -> Option<Ticket>) {
        for lane in &mut self.lanes {
            lane.renew(&renewed);
        }
        self.lanes.retain(Lane::is_kept);
    }

    /// How many tickets there are, stale ones included.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.line.len()).sum()
    }

    /// How many tickets there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.lanes.iter().map(|lane| lane.line.capacity()).sum()
    }
}

impl Lane {
    fn new(priority: Priority, fair: bool) -> Self {
        let line = if fair { Line::Fair(Box::default()) } else { Line::Fifo(VecDeque::new()) };
        Self { priority, line, live: 0, sweep_at: TOLERATED }
    }

    fn is_kept(&self) -> bool {
        self.priority == Priority::NORMAL || self.live > 0 || self.line.len() > 0
    }

    fn sweep_if_mostly_stale(&mut self, valid: impl Fn(Ticket) -> bool) {
        let len = self.line.len();
        if len > self.sweep_at && len > 2 * self.live + TOLERATED {
            self.renew(|ticket| valid(ticket).then_some(ticket));
        }
    }

    fn renew(&mut self, renewed: impl Fn(Ticket) -> Option<Ticket>) {
        self.line.renew(renewed);
        self.sweep_at = 2 * self.line.len() + TOLERATED;
    }
}
