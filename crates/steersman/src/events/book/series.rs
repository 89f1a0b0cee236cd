//! One series: what the server knows of it, and what it does not know yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Moment, SILENCE};
use crate::events::EventForm;
use crate::events::document::{Document, Origin, Tally};
use crate::events::identity::Identity;
use crate::events::metrics::Loss;
use crate::random;

/// Between the first two updates of a series; then twice as long each time.
const PACE_MIN: Duration = Duration::from_secs(1);
/// Between two updates of a series at most, and after a refusal.
const PACE_MAX: Duration = Duration::from_secs(300);
/// After a failure; then twice as long each time.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// With these delays, about five minutes.
const TRIES_MAX: u32 = 14;

/// Equal events.
pub(super) struct Series {
    origin: Origin,
    /// How often it happened.
    count: i32,
    last: Moment,
    /// Whether the server has the event.
    exists: bool,
    /// As many occurrences may be written. Of counted events each takes a token; those that got
    /// none are written with the next that does.
    allowed: i32,
    /// As many occurrences are written, or given up.
    written: i32,
    /// Not to be written earlier.
    not_before: Instant,
    pace: Duration,
    failures: u32,
}

/// Something to write.
#[derive(Debug)]
pub(in crate::events) struct Write {
    pub(in crate::events) identity: Arc<Identity>,
    pub(in crate::events) task: Task,
}

/// What to write.
#[derive(Debug)]
pub(in crate::events) struct Task {
    pub(in crate::events) event: Box<Document>,
    /// Whether the server has the event, and needs to be told only what changed.
    pub(in crate::events) exists: bool,
    /// As many occurrences are in it.
    pub(in crate::events) count: i32,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::events) enum Written {
    /// The server has it.
    Done,
    /// The event to update is not there any more.
    Missing,
    /// The server does not want it, now or ever.
    Refused,
    /// It may work later.
    Failed,
}

impl Series {
    /// A series with its first occurrence.
    pub(super) fn new(origin: Origin, now: Moment, allowed: bool) -> Self {
        Self {
            origin,
            count: 1,
            not_before: now.instant,
            last: now,
            exists: false,
            allowed: i32::from(allowed),
            written: 0,
            pace: PACE_MIN,
            failures: 0,
        }
    }

    pub(super) fn count(&mut self, now: Moment, allowed: bool) {
        self.count = self.count.saturating_add(1);
        self.last = now;
        if allowed {
            self.allowed = self.count;
        }
    }

    /// Takes in what the last of the events said for which this one speaks.
    pub(super) fn now_says(&mut self, last: &Identity) {
        self.origin.now_says(last);
    }

    /// Whether the server does not know everything that it is to know.
    pub(super) fn has_unwritten(&self) -> bool {
        self.allowed > self.written
    }

    /// When this series wants attention: to be written, or to end. One of counted events does not
    /// end by itself.
    pub(super) fn due(&self, form: EventForm) -> Option<Instant> {
        match form {
            _ if self.has_unwritten() => Some(self.not_before),
            EventForm::Series => Some(self.last.instant + SILENCE),
            EventForm::Counted => None,
        }
    }

    /// When it happened last.
    pub(super) fn last(&self) -> Instant {
        self.last.instant
    }

    /// What to write, if anything.
    pub(super) fn take(&self, identity: &Identity) -> Option<Task> {
        if !self.has_unwritten() {
            return None;
        }
        let tally = Tally { count: self.count, last: self.last.time.clone() };
        let event = Box::new(Document::new(identity, &self.origin, &tally));
        Some(Task { event, exists: self.exists, count: self.count })
    }

    /// Takes in what became of a write; returns what was lost by it.
    pub(super) fn finish(
        &mut self,
        write: &Write,
        written: &Written,
        now: Instant,
    ) -> Option<Loss> {
        let Write { identity, task } = write;
        let is_paced = identity.form() == EventForm::Series; // the others have their tokens
        match written {
            Written::Done => {
                self.not_before = if self.exists && is_paced { now + self.pace } else { now };
                if self.exists {
                    self.pace = (self.pace * 2).min(PACE_MAX);
                }
                self.exists = true;
                self.settle(task);
                None
            }
            Written::Missing => {
                self.exists = false;
                None
            }
            Written::Failed if self.failures < TRIES_MAX => {
                let delay = RETRY_MIN * 2_u32.pow(self.failures.min(10));
                self.failures += 1;
                self.not_before = now + random::jitter(delay.min(RETRY_MAX), 0.2);
                None
            }
            Written::Refused | Written::Failed => {
                self.not_before = if is_paced { now + PACE_MAX } else { now };
                self.settle(task);
                let refused = *written == Written::Refused;
                Some(if refused { Loss::Refused } else { Loss::Failed })
            }
        }
    }

    /// What was in the task needs no writing any more.
    fn settle(&mut self, task: &Task) {
        self.failures = 0;
        self.written = task.count;
    }
}
