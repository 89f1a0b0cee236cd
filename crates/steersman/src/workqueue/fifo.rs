//! First in, first out, each key at most once, each key by one worker at a time.

use std::collections::{HashSet, VecDeque};

use super::Key;

/// The ready keys.
#[derive(Debug)]
pub(super) struct Fifo<T> {
    /// The order in which keys are given out. Each is in `dirty` and not in `processing`.
    queue: VecDeque<T>,
    /// Keys that want work.
    dirty: HashSet<T>,
    /// Keys that are being worked on. One that is also dirty is queued when it is done.
    processing: HashSet<T>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), dirty: HashSet::new(), processing: HashSet::new() }
    }
}

impl<T: Key> Fifo<T> {
    /// Marks a key as wanting work; true if a worker can take it now.
    pub(super) fn add(&mut self, key: T) -> bool {
        if !self.dirty.insert(key.clone()) || self.processing.contains(&key) {
            return false;
        }
        self.queue.push_back(key);
        true
    }

    /// Gives out the oldest key.
    pub(super) fn take(&mut self) -> Option<T> {
        let key = self.queue.pop_front()?;
        self.dirty.remove(&key);
        self.processing.insert(key.clone());
        Some(key)
    }

    /// Ends the work on a key; true if it wants work again and a worker can take it now.
    pub(super) fn done(&mut self, key: &T) -> bool {
        if !self.processing.remove(key) || !self.dirty.contains(key) {
            return false;
        }
        self.queue.push_back(key.clone());
        true
    }

    /// Whether a key wants work that nobody has begun.
    pub(super) fn is_waiting(&self, key: &T) -> bool {
        self.dirty.contains(key)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}
