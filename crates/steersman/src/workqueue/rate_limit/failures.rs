//! Counts the failures of each key.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::workqueue::Key;

/// How often each key has failed since it was forgotten; who never failed is not in it.
#[derive(Debug)]
pub(super) struct Failures<T>(Mutex<HashMap<T, u32>>);

impl<T> Default for Failures<T> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<T> Failures<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<T, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Key> Failures<T> {
    /// Counts one more, and tells how many there were before.
    pub(super) fn count(&self, key: &T) -> u32 {
        let mut failures = self.lock();
        let count = failures.entry(key.clone()).or_insert(0);
        let before = *count;
        *count = count.saturating_add(1);
        before
    }

    pub(super) fn forget(&self, key: &T) {
        let _forgotten = self.lock().remove_entry(key);
    }

    pub(super) fn of(&self, key: &T) -> u32 {
        self.lock().get(key).copied().unwrap_or(0)
    }
}
