//! Whether somebody looks for schemas of definitions that nobody uses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Who looks, and how often that was done.
#[derive(Debug, Default)]
pub(crate) struct Resting {
    is_looking: AtomicBool,
    rounds: AtomicU64,
}

impl Resting {
    /// Takes it upon oneself to look; false if somebody else does.
    pub(crate) fn begin(&self) -> bool {
        !self.is_looking.load(Ordering::Acquire) && !self.is_looking.swap(true, Ordering::AcqRel)
    }

    /// Looks no longer.
    pub(crate) fn end(&self) {
        self.is_looking.store(false, Ordering::Release);
    }

    /// The number of the next look.
    pub(crate) fn round(&self) -> u64 {
        self.rounds.fetch_add(1, Ordering::Relaxed) + 1
    }
}
