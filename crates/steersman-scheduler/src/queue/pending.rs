//! A Pod that has no node yet.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::time::Duration;

use tokio::time::Instant;

use crate::framework::QueuedPod;

/// How long a Pod stays unschedulable if nothing happens.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The first and the longest wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_secs(1), max: Duration::from_secs(10) }
    }
}

/// A Pod that has no node yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) queued: QueuedPod,
    /// How often it did not fit.
    pub(crate) refused: u32,
    /// How often something went wrong, one time after the other.
    pub(crate) errors: u32,
    /// Who refused it.
    pub(crate) plugins: BTreeSet<&'static str>,
    /// Who waits for something outside.
    pub(crate) waits_for: BTreeSet<&'static str>,
    /// Who keeps it from being queued at all.
    pub(crate) gated_by: Option<&'static str>,
    /// How long it stays unschedulable if nothing happens.
    pub(crate) patience: Duration,
    /// When it was tried for the first time.
    pub(crate) first_tried: Option<Instant>,
    /// Whether it is tried again only because it has been unschedulable for so long.
    pub(crate) was_flushed: bool,
}

impl Deref for Pending {
    type Target = QueuedPod;

    fn deref(&self) -> &QueuedPod {
        &self.queued
    }
}

impl Pending {
    /// A Pod that is new.
    pub(crate) fn new(queued: QueuedPod) -> Self {
        let (plugins, waits_for) = Default::default();
        let (refused, errors, first_tried, gated_by, was_flushed) = Default::default();
        Self {
            queued,
            refused,
            errors,
            plugins,
            waits_for,
            gated_by,
            patience: PATIENCE,
            first_tried,
            was_flushed,
        }
    }

    /// When it is tried again if nothing happens; never while it has gates.
    pub(crate) fn stays_until(&self) -> Option<Instant> {
        (self.info.gates == 0).then(|| self.timestamp + self.patience)
    }

    /// Whether nobody refused it: something went wrong.
    pub(crate) fn has_failed(&self) -> bool {
        self.plugins.is_empty() && self.waits_for.is_empty()
    }

    /// Until when it is not tried again, unless nobody else is there.
    pub(crate) fn backs_off_until(&self, backoff: Backoff) -> Instant {
        let count = if self.errors > 0 { self.errors } else { self.refused };
        match count.checked_sub(1) {
            None => self.timestamp,
            Some(times) => {
                let wait = backoff.initial.saturating_mul(2_u32.saturating_pow(times));
                self.timestamp + wait.min(backoff.max)
            }
        }
    }
}
