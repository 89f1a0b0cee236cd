//! How long a key waits after it has failed.
//!
//! Each rule is its own file; [`MaxOf`] and [`WithMaxWait`] combine them. Limiters lock for
//! themselves, because a queue calls them without holding its own lock.

mod bucket;
mod combine;
mod exponential;
mod failures;
mod fast_slow;
mod guarded;

use std::time::Duration;

pub use bucket::TokenBucket;
pub use combine::{MaxOf, WithMaxWait};
pub use exponential::ExponentialBackoff;
pub use fast_slow::FastSlow;
pub(super) use guarded::Guarded;

/// Decides how long a key that failed has to wait.
pub trait RateLimiter<T>: Send + Sync {
    /// Notes a failure and gives the time to wait.
    fn failed(&self, key: &T) -> Duration;

    /// Forgets the failures of a key.
    fn forget(&self, key: &T);

    /// How often a key failed since it was forgotten.
    fn failures(&self, key: &T) -> u32;
}

impl<T> RateLimiter<T> for Box<dyn RateLimiter<T>> {
    fn failed(&self, key: &T) -> Duration {
        (**self).failed(key)
    }

    fn forget(&self, key: &T) {
        (**self).forget(key);
    }

    fn failures(&self, key: &T) -> u32 {
        (**self).failures(key)
    }
}

#[cfg(test)]
mod tests;
