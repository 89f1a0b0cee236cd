//! Twice as long after every failure of the same key.

use std::time::Duration;

use super::RateLimiter;
use super::failures::Failures;
use crate::random;
use crate::workqueue::Key;

/// How much a wait is lengthened at random, at most, so that keys that failed together are not
/// retried together.
const JITTER: f64 = 0.1;

/// Doubles the wait with every failure of the same key, up to a limit, with jitter.
#[derive(Debug)]
pub struct ExponentialBackoff<T> {
    /// The wait after the first failure.
    pub base: Duration,
    /// The longest wait, before jitter.
    pub max: Duration,
    failures: Failures<T>,
}

impl<T> ExponentialBackoff<T> {
    /// Waits `base` after the first failure and `max` at most.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: Failures::default() }
    }
}

impl<T> Default for ExponentialBackoff<T> {
    /// client-go's default for one key: 5 ms to 1000 s.
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<T: Key> RateLimiter<T> for ExponentialBackoff<T> {
    fn failed(&self, key: &T) -> Duration {
        let doublings = self.failures.count(key);
        let doubled = self.base.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX));
        random::jitter(doubled.min(self.max), JITTER)
    }

    fn forget(&self, key: &T) {
        self.failures.forget(key);
    }

    fn failures(&self, key: &T) -> u32 {
        self.failures.of(key)
    }
}
