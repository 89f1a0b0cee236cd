//! Keys that are to be queued later.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::Key;

/// Nothing waits longer than this; what is further away comes early, which does no harm.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// The waiting keys, by when they are due.
#[derive(Debug)]
pub(super) struct Delayed<T> {
    /// Ordered by time, then by the order in which they were added.
    by_time: BTreeMap<(Instant, u64), T>,
    /// Where each key stands in `by_time`; each key stands there once.
    by_key: HashMap<T, (Instant, u64)>,
    added: u64,
}

impl<T> Default for Delayed<T> {
    fn default() -> Self {
        Self { by_time: BTreeMap::new(), by_key: HashMap::new(), added: 0 }
    }
}

impl<T: Key> Delayed<T> {
    /// Adds a key, unless it is already due sooner.
    pub(super) fn add(&mut self, key: T, now: Instant, delay: Duration) {
        let due = now + delay.min(LONGEST);
        if self.by_key.get(&key).is_some_and(|(sooner, _)| *sooner <= due) {
            return;
        }
        self.remove(&key);
        self.added += 1;
        self.by_time.insert((due, self.added), key.clone());
        self.by_key.insert(key, (due, self.added));
    }

    pub(super) fn remove(&mut self, key: &T) {
        if let Some(place) = self.by_key.remove(key) {
            self.by_time.remove(&place);
        }
    }

    /// Removes and returns the keys that are due, in order.
    pub(super) fn due(&mut self, now: Instant) -> Vec<T> {
        let mut due = Vec::new();
        while let Some(entry) = self.by_time.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.by_key.remove(&key);
            due.push(key);
        }
        due
    }

    /// When the next key is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first_key_value().map(|((due, _), _)| *due)
    }
}
