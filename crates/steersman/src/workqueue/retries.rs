//! Which keys back off, and until when.
//!
//! A failure before that moment is no new one: the key was only tried again early, because
//! something else asked for it. Otherwise a busy key would climb to the longest wait without
//! ever having waited.

use std::time::Duration;

use hashbrown::HashMap;

use super::sync::Mutex;
use super::time::Tick;
use super::{Key, RateLimiter};

/// The failing keys, until they are forgotten.
#[derive(Debug)]
pub(super) struct Retries<T> {
    /// Has a lock of its own, so that forgetting does not disturb the queue. The limiter is
    /// never called under it.
    due: Mutex<HashMap<T, Tick>>,
}

impl<T: Key> Default for Retries<T> {
    fn default() -> Self {
        Self { due: Mutex::new(HashMap::new()) }
    }
}

impl<T: Key> Retries<T> {
    /// Notes that a key failed; gives the time it still has to wait.
    pub(super) fn failed(&self, key: &T, now: Tick, limiter: &dyn RateLimiter<T>) -> Duration {
        let due = self.due.lock().get(key).copied();
        if let Some(due) = due.filter(|due| *due > now) {
            return due.since(now);
        }
        let delay = limiter.failed(key);
        self.due.lock().insert(key.clone(), now.after(delay));
        delay
    }

    pub(super) fn forget(&self, key: &T) {
        let _forgotten = self.due.lock().remove_entry(key);
    }

    /// Whether a key failed and was not forgotten since.
    pub(super) fn contains(&self, key: &T) -> bool {
        self.due.lock().contains_key(key)
    }
}
