//! One series: what the server knows of it, and what it does not know yet.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::events::v1::{Event, EventSeries};
use tokio::time::Instant;

use super::{Moment, SILENCE};
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
    /// As it was first written.
    event: Event,
    /// How often it happened.
    count: i32,
    last: Moment,
    /// Whether the server has the event.
    exists: bool,
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
pub(in crate::events) enum Task {
    /// The event, new or again.
    Create(Box<Event>),
    /// How often it has happened.
    Update {
        /// The event as it was first written, which names it.
        event: Box<Event>,
        /// The new count and time.
        series: EventSeries,
    },
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
    pub(super) fn new(event: Event, now: Moment) -> Self {
        Self {
            event,
            count: 1,
            not_before: now.instant,
            last: now,
            exists: false,
            written: 0,
            pace: PACE_MIN,
            failures: 0,
        }
    }

    pub(super) fn count(&mut self, now: Moment) {
        self.count = self.count.saturating_add(1);
        self.last = now;
    }

    /// Whether the server does not know everything.
    pub(super) fn has_unwritten(&self) -> bool {
        self.count > self.written
    }

    /// When this series wants attention: to be written, or to end.
    pub(super) fn due(&self) -> Instant {
        if self.has_unwritten() { self.not_before } else { self.last.instant + SILENCE }
    }

    /// What to write, if anything.
    pub(super) fn take(&self) -> Option<Task> {
        if !self.has_unwritten() {
            return None;
        }
        let series = EventSeries { count: self.count, last_observed_time: self.last.time.clone() };
        let mut event = Box::new(self.event.clone());
        if self.exists {
            return Some(Task::Update { event, series });
        }
        event.series = (self.count > 1).then_some(series); // a series has at least two
        Some(Task::Create(event))
    }

    /// Takes in what became of a write; returns what was lost by it.
    pub(super) fn finish(&mut self, task: &Task, written: &Written, now: Instant) -> Option<Loss> {
        match written {
            Written::Done => {
                self.not_before = if self.exists { now + self.pace } else { now };
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
                self.not_before = now + PACE_MAX;
                self.settle(task);
                let refused = *written == Written::Refused;
                Some(if refused { Loss::Refused } else { Loss::Failed })
            }
        }
    }

    /// What was in the task needs no writing any more.
    fn settle(&mut self, task: &Task) {
        self.failures = 0;
        self.written = match task {
            Task::Create(event) => event.series.as_ref().map_or(1, |series| series.count),
            Task::Update { series, .. } => series.count,
        };
    }
}
