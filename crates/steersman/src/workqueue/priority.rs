//! How urgent a key is.

use std::time::Duration;

use serde::Serialize;

use super::time::Tick;

/// How much of a head start one step of priority is worth.
///
/// A key competes with the moment it was added less this much per step, so a higher priority
/// overtakes, but only what was added shortly before: nothing starves. As long as only
/// [`Priority::NORMAL`] is in use, a queue without metrics does not note when keys are added;
/// those that wait when another priority appears count as added then. From then on it notes the
/// time, until no key waits.
pub(super) const HEAD_START: Duration = Duration::from_millis(100);

/// How urgent a key is; higher comes first.
///
/// Each step is worth 100 ms of waiting: a key of priority [`LOW`](Self::LOW) lets pass what is
/// added in the ten seconds after it, and is older than anything that comes later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Priority(pub i32);

impl Priority {
    /// For what can wait: keys of the initial list and of resyncs. As in controller-runtime.
    pub const LOW: Self = Self(-100);
    /// For live changes; what keys have unless said otherwise.
    pub const NORMAL: Self = Self(0);

    /// Where a key added at `at` stands among keys of all priorities; the smallest is next.
    pub(super) fn rank(self, at: Tick) -> i64 {
        let at = i64::try_from(at.0).unwrap_or(i64::MAX);
        at.saturating_sub(i64::from(self.0) * (HEAD_START.as_nanos() as i64))
    }
}
