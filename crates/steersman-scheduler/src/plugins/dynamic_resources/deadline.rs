//! How long it may take to look for devices on a node.
//!
//! There can be more choices than can ever be tried, and no other Pod is decided upon meanwhile. A
//! virtual clock stands still while something is computed, so this is about time that really passes.

use std::time::{Duration, Instant};

/// In how many steps the clock is looked at once: most searches end before that.
const LOOKED_EVERY: u32 = 256;

/// When a search is given up, if ever.
pub(super) struct Deadline {
    at: Option<Instant>,
    steps: u32,
}

impl Deadline {
    /// After this time from now on.
    pub(super) fn after(timeout: Option<Duration>) -> Self {
        Self { at: timeout.and_then(|timeout| now().checked_add(timeout)), steps: 0 }
    }

    /// Counts a step. Whether it is too late for more.
    pub(super) fn is_over(&mut self) -> bool {
        let Some(at) = self.at else { return false };
        self.steps = self.steps.wrapping_add(1);
        self.steps.is_multiple_of(LOOKED_EVERY) && now() >= at
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's clock may stand still during a search")]
fn now() -> Instant {
    Instant::now()
}
