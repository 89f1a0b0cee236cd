//! Which compact objects stay decoded: the recently used ones, so many and no more.
//!
//! A clock: objects stand in a ring in the order in which they were decoded; when it is full,
//! the one at its hand is let go, unless it was used since the hand last passed. To be decoded is to be
//! used: otherwise what has just come would go before what has been seen already. And the hand
//! passes once a minute by itself ([`Recent::cool`]), so that what nobody reads any more does not
//! stay because nothing else comes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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

    /// Whether so many can be kept at once.
    pub(super) fn keeps(&self, count: usize) -> bool {
        self.limit >= count
    }

    /// How many are kept, some of which may be gone.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Looks at so many of those that were decoded first, and lets those go that were not used since
    /// they were looked at last.
    pub(super) fn cool(&self, count: usize) {
        let mut ring = self.lock();
        let first = count.min(ring.len());
        let looked_at: Vec<_> = ring.drain(..first).collect();
        drop(ring); // letting an object go takes a while
        let used = looked_at.into_iter().filter(|held| !let_go(held)).collect::<Vec<_>>();
        let mut ring = self.lock();
        ring.extend(used);
        if ring.is_empty() {
            ring.shrink_to_fit();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<Held>>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a freshly decoded object among the recently used.
    pub(super) fn keep(&self, held: &Arc<Held>) {
        let mut ring = self.lock();
        ring.push_back(Arc::downgrade(held));
        // Each object gets at most one second chance, so this ends.
        for _ in 0..=ring.len() {
            if ring.len() <= self.limit {
                break;
            }
            let Some(oldest) = ring.pop_front() else { break };
            if !let_go(&oldest) {
                ring.push_back(oldest);
            }
        }
    }
}

/// Lets go of an object unless it was used since it was last looked at; true if it is let go, or
/// gone.
fn let_go(held: &Weak<Held>) -> bool {
    match held.upgrade().as_deref() {
        Some(Held { body: Body::Compact(packed), .. }) => packed.cool(),
        _ => true,
    }
}
