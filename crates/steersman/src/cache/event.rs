//! What a write to a cache changed.

use std::sync::Arc;

/// Something happened to an object.
#[derive(Debug)]
pub enum Event<K> {
    /// The object is new to the cache.
    Added {
        /// The object.
        object: Arc<K>,
        /// It was there before the handler or the cache started.
        initial: bool,
    },
    /// The object changed.
    Updated {
        /// What it was.
        old: Arc<K>,
        /// What it is.
        new: Arc<K>,
    },
    /// The object is gone.
    Deleted {
        /// The last state that was seen.
        object: Arc<K>,
        /// The deletion itself was missed, so the last state may be older than the final one.
        final_state_unknown: bool,
    },
}

impl<K> Event<K> {
    /// The object as it is now, or as it last was.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added { object, .. } | Self::Deleted { object, .. } => object,
            Self::Updated { new, .. } => new,
        }
    }

    /// The object before and after, whichever exist: a change can concern what it left.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<K>> {
        let old = match self {
            Self::Updated { old, .. } => Some(old),
            _ => None,
        };
        old.into_iter().chain(std::iter::once(self.object()))
    }
}
