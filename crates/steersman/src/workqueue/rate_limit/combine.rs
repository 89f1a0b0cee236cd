//! Limiters made of limiters.

use std::time::Duration;

use super::{ExponentialBackoff, RateLimiter, TokenBucket};
use crate::workqueue::Key;

/// The longest wait that any of several limiters demands.
pub struct MaxOf<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

impl<T> MaxOf<T> {
    /// Without limiters it lets everything pass at once.
    pub fn new() -> Self {
        Self { limiters: Vec::new() }
    }

    /// Also asks this one.
    pub fn and(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl<T: Key> Default for MaxOf<T> {
    /// client-go's default for controllers: exponential back-off for each key, and ten retries
    /// a second over all of them.
    fn default() -> Self {
        Self::new().and(ExponentialBackoff::default()).and(TokenBucket::default())
    }
}

impl<T> RateLimiter<T> for MaxOf<T> {
    fn failed(&self, key: &T) -> Duration {
        self.limiters.iter().map(|limiter| limiter.failed(key)).max().unwrap_or_default()
    }

    fn forget(&self, key: &T) {
        for limiter in &self.limiters {
            limiter.forget(key);
        }
    }

    fn failures(&self, key: &T) -> u32 {
        self.limiters.iter().map(|limiter| limiter.failures(key)).max().unwrap_or_default()
    }
}

/// Another limiter's wait, cut to a longest one.
#[derive(Debug)]
pub struct WithMaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L> WithMaxWait<L> {
    /// Waits as `limiter` says, but no longer than `max`.
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for WithMaxWait<L> {
    fn failed(&self, key: &T) -> Duration {
        self.limiter.failed(key).min(self.max)
    }

    fn forget(&self, key: &T) {
        self.limiter.forget(key);
    }

    fn failures(&self, key: &T) -> u32 {
        self.limiter.failures(key)
    }
}
