//! A limiter as a queue calls it. It may be anybody's code: if it panics, that costs neither the
//! key nor the worker.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::RateLimiter;

/// How long a key waits whose limiter panicked.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// A limiter whose panics are logged and go no further.
pub(in crate::workqueue) struct Guarded<T>(Box<dyn RateLimiter<T>>);

impl<T: Debug> Guarded<T> {
    pub(in crate::workqueue) fn new(limiter: Box<dyn RateLimiter<T>>) -> Self {
        Self(limiter)
    }

    pub(in crate::workqueue) fn failed(&self, key: &T) -> Duration {
        self.call(key, |limiter| limiter.failed(key)).unwrap_or(AFTER_PANIC)
    }

    pub(in crate::workqueue) fn forget(&self, key: &T) {
        self.call(key, |limiter| limiter.forget(key));
    }

    pub(in crate::workqueue) fn failures(&self, key: &T) -> u32 {
        self.call(key, |limiter| limiter.failures(key)).unwrap_or_default()
    }

    fn call<R>(&self, key: &T, call: impl FnOnce(&dyn RateLimiter<T>) -> R) -> Option<R> {
        // What state a limiter is in after a panic is its own affair.
        let result = catch_unwind(AssertUnwindSafe(|| call(&*self.0)));
        result.inspect_err(|_| tracing::error!(?key, "rate limiter panicked")).ok()
    }
}
