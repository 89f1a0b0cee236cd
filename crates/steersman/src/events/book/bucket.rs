//! How many series may be begun about one object.

use std::time::Duration;

use tokio::time::Instant;

/// As many may begin at once.
const BURST: f64 = 25.0;
/// After this long another may begin.
const REFILL: Duration = Duration::from_secs(300);

/// Tokens that fill up slowly.
pub(super) struct Bucket {
    tokens: f64,
    /// When the tokens were counted last.
    pub(super) last: Instant,
}

impl Bucket {
    pub(super) fn full(now: Instant) -> Self {
        Self { tokens: BURST, last: now }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.last);
        self.tokens = (self.tokens + elapsed.div_duration_f64(REFILL)).min(BURST);
        self.last = now;
        let any = self.tokens >= 1.0;
        if any {
            self.tokens -= 1.0;
        }
        any
    }
}
