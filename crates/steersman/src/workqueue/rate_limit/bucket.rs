//! So many retries a second over all keys.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// Spaces out the retries of all keys together: so many a second, after a burst.
///
/// Tokens fall into a bucket at a steady rate. Each retry reserves the next one and waits until
/// it has fallen.
#[derive(Debug)]
pub struct TokenBucket {
    /// The time between two tokens.
    interval: Duration,
    /// How long an empty bucket takes to fill.
    filling: Duration,
    /// When the bucket will be, or was, full if nothing more is taken: further ahead means
    /// emptier. All there is to a bucket.
    full_at: Mutex<Option<Instant>>,
}

impl TokenBucket {
    /// `rate` tokens a second into a bucket of `burst`, full at the start. At least one of each.
    pub fn new(rate: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / rate.max(1);
        Self { interval, filling: interval * burst.max(1), full_at: Mutex::new(None) }
    }
}

impl Default for TokenBucket {
    /// client-go's default for all keys: 10 a second, 100 at once.
    fn default() -> Self {
        Self::new(10, 100)
    }
}

impl<T> RateLimiter<T> for TokenBucket {
    fn failed(&self, _key: &T) -> Duration {
        let now = Instant::now();
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let after_this = full_at.map_or(now, |full| full.max(now)) + self.interval;
        *full_at = Some(after_this);
        (after_this - now).saturating_sub(self.filling)
    }

    fn forget(&self, _key: &T) {}

    /// A bucket counts tokens, not failures.
    fn failures(&self, _key: &T) -> u32 {
        0
    }
}
