//! Which keys back off, and until when.
//!
//! The failure of a run that began before that moment is no new one: the key was only tried
//! again early, because something else asked for it. Otherwise a busy key would climb to the
//! longest wait without ever having waited.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hashbrown::HashMap;

use super::Key;
use super::rate_limit::Guarded;
use super::sync::Mutex;
use super::time::Tick;

/// The failing keys, until they are forgotten.
#[derive(Debug)]
pub(super) struct Retries<T> {
    /// Has a lock of its own, so that forgetting does not disturb the queue. Neither the
    /// limiter nor the queue is called under it; the key's `Hash`, `Eq` and `Clone` are.
    due: Mutex<HashMap<T, Tick>>,
    /// How many keys these are. Only changed under the lock.
    len: AtomicUsize,
}

/// A failure as it is reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure<Began> {
    pub(super) now: Tick,
    /// Tells when the run began that failed, if the key is still worked on.
    pub(super) began: Began,
}

impl<T: Key> Default for Retries<T> {
    fn default() -> Self {
        Self { due: Mutex::new(HashMap::new()), len: AtomicUsize::new(0) }
    }
}

impl<T: Key> Retries<T> {
    /// Notes that a key failed; gives the time it still has to wait.
    pub(super) fn failed<Began: FnOnce() -> Option<Tick>>(
        &self,
        key: &T,
        failure: Failure<Began>,
        limiter: &Guarded<T>,
    ) -> Duration {
        let now = failure.now;
        let due = self.due.lock().get(key).copied();
        if let Some(due) = due {
            // When a run begins is noted if any key backs off. If it was not, none did, and this
            // key has failed before in the same run.
            let began = (failure.began)().map(|began| began.known().unwrap_or_default());
            if due > began.unwrap_or(now) {
                return due.since(now);
            }
        }
        let delay = limiter.failed(key);
        let mut all = self.due.lock();
        all.insert(key.clone(), now.after(delay));
        self.len.store(all.len(), Ordering::Relaxed);
        delay
    }

    pub(super) fn forget(&self, key: &T) {
        if !self.any() {
            return; // nearly always; who has failed was counted before it could be forgotten
        }
        let mut all = self.due.lock();
        let _forgotten = all.remove_entry(key);
        self.len.store(all.len(), Ordering::Relaxed);
        drop(all); // before the key is
    }

    /// Whether any key backs off, so that it matters when runs begin.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.len.load(Ordering::Relaxed) > 0
    }

    /// Whether a key failed and was not forgotten since.
    pub(super) fn contains(&self, key: &T) -> bool {
        self.due.lock().contains_key(key)
    }
}
