//! Which compact objects stay decoded: the recently used ones, so many and no more.
//!
//! A clock: objects stand in a ring in the order in which they were decoded; when it is full,
//! the one at its hand is let go, unless it was used since the hand last passed. To be decoded is to be
//! used: otherwise what has just come would go before what has been seen already.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::item::{Body, Held};

/// The ring. It does not keep objects alive that the cache has dropped.
pub(super) struct Recent {
    limit: usize,
    ring: Mutex<VecDeque<Weak<Held>>>,
}

impl Recent {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, ring: Mutex::default() }
    }

    pub(super) fn keeps_any(&self) -> bool {
        self.limit > 0
    }

    /// Counts a freshly decoded object among the recently used.
    pub(super) fn keep(&self, held: &Arc<Held>) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.push_back(Arc::downgrade(held));
        // Each object gets at most one second chance, so this ends.
        for _ in 0..=ring.len() {
            if ring.len() <= self.limit {
                break;
            }
            let Some(oldest) = ring.pop_front() else { break };
            if let Some(held) = oldest.upgrade()
                && let Body::Compact(packed) = &held.body
                && !packed.cool()
            {
                ring.push_back(oldest);
            }
        }
    }
}
