//! A few quick retries, then slow ones.

use std::time::Duration;

use super::RateLimiter;
use super::failures::Failures;
use crate::workqueue::Key;

/// Retries a key quickly a few times and slowly from then on.
#[derive(Debug)]
pub struct FastSlow<T> {
    /// The wait after the first failures.
    pub fast: Duration,
    /// The wait after all others.
    pub slow: Duration,
    /// How many retries are fast.
    pub fast_attempts: u32,
    failures: Failures<T>,
}

impl<T> FastSlow<T> {
    /// Waits `fast` after the first failures and `slow` after the others; five are fast unless
    /// [`fast_attempts`](Self::fast_attempts) says otherwise.
    pub fn new(fast: Duration, slow: Duration) -> Self {
        Self { fast, slow, fast_attempts: 5, failures: Failures::default() }
    }

    /// How many retries are fast.
    pub fn fast_attempts(mut self, attempts: u32) -> Self {
        self.fast_attempts = attempts;
        self
    }
}

impl<T: Key> RateLimiter<T> for FastSlow<T> {
    fn failed(&self, key: &T) -> Duration {
        if self.failures.count(key) < self.fast_attempts { self.fast } else { self.slow }
    }

    fn forget(&self, key: &T) {
        self.failures.forget(key);
    }

    fn failures(&self, key: &T) -> u32 {
        self.failures.of(key)
    }
}
