//! How long a key waits after it has failed.

use std::collections::HashMap;
use std::time::Duration;

use super::Key;
use crate::random;

/// Decides how long a key that failed has to wait.
pub trait RateLimiter<T>: Send {
    /// Notes a failure and gives the time to wait.
    fn failed(&mut self, key: &T) -> Duration;

    /// Forgets the failures of a key.
    fn forget(&mut self, key: &T);

    /// How often a key failed since it was forgotten.
    fn failures(&self, key: &T) -> u32;
}

impl<T> RateLimiter<T> for Box<dyn RateLimiter<T>> {
    fn failed(&mut self, key: &T) -> Duration {
        (**self).failed(key)
    }

    fn forget(&mut self, key: &T) {
        (**self).forget(key);
    }

    fn failures(&self, key: &T) -> u32 {
        (**self).failures(key)
    }
}

/// Doubles the wait with every failure of the same key, up to a limit, with jitter.
#[derive(Debug)]
pub struct ExponentialBackoff<T> {
    /// The wait after the first failure.
    pub base: Duration,
    /// The longest wait.
    pub max: Duration,
    failures: HashMap<T, u32>,
}

impl<T> ExponentialBackoff<T> {
    /// Waits `base` after the first failure and `max` at most.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: HashMap::new() }
    }
}

impl<T> Default for ExponentialBackoff<T> {
    /// client-go's default for one key: 5 ms to 1000 s.
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<T: Key> RateLimiter<T> for ExponentialBackoff<T> {
    fn failed(&mut self, key: &T) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let doubled = self.base.saturating_mul(1_u32.checked_shl(*failures).unwrap_or(u32::MAX));
        *failures = failures.saturating_add(1);
        random::jitter(doubled.min(self.max), 0.1)
    }

    fn forget(&mut self, key: &T) {
        self.failures.remove(key);
    }

    fn failures(&self, key: &T) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }
}
