//! What a write to a cache changed.

use super::item::Item;

/// Something happened to an object.
pub enum Event<K> {
    /// The object is new to the cache.
    Added {
        /// The object.
        object: Item<K>,
        /// It was there before the handler or the cache started.
        initial: bool,
    },
    /// The object changed.
    Updated {
        /// What it was.
        old: Item<K>,
        /// What it is.
        new: Item<K>,
    },
    /// The object is gone.
    Deleted {
        /// The last state that was seen.
        object: Item<K>,
        /// The deletion itself was missed, so the last state may be older than the final one.
        final_state_unknown: bool,
    },
    /// Nothing happened: the handler asked for a resync, which gives it every object again.
    Resynced {
        /// The object.
        object: Item<K>,
    },
    /// Nothing is known to have happened: somebody outside of the cluster points at the object.
    Generic {
        /// The object.
        object: Item<K>,
    },
}

impl<K> Event<K> {
    /// The object as it is now, or as it last was.
    pub fn object(&self) -> &Item<K> {
        match self {
            Self::Added { object, .. }
            | Self::Deleted { object, .. }
            | Self::Resynced { object }
            | Self::Generic { object } => object,
            Self::Updated { new, .. } => new,
        }
    }

    /// The object before and after, whichever exist: a change can concern what it left.
    pub fn objects(&self) -> impl Iterator<Item = &Item<K>> {
        let old = match self {
            Self::Updated { old, .. } => Some(old),
            _ => None,
        };
        old.into_iter().chain(std::iter::once(self.object()))
    }
}

impl<K> Event<K> {
    /// The same event for readers of another type, which must be that of the objects.
    pub(crate) fn cast<C>(self) -> Event<C> {
        match self {
            Self::Added { object, initial } => Event::Added { object: object.cast(), initial },
            Self::Updated { old, new } => Event::Updated { old: old.cast(), new: new.cast() },
            Self::Deleted { object, final_state_unknown } => {
                Event::Deleted { object: object.cast(), final_state_unknown }
            }
            Self::Resynced { object } => Event::Resynced { object: object.cast() },
            Self::Generic { object } => Event::Generic { object: object.cast() },
        }
    }
}

impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, initial } => {
                Self::Added { object: object.clone(), initial: *initial }
            }
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Deleted { object, final_state_unknown } => {
                Self::Deleted { object: object.clone(), final_state_unknown: *final_state_unknown }
            }
            Self::Resynced { object } => Self::Resynced { object: object.clone() },
            Self::Generic { object } => Self::Generic { object: object.clone() },
        }
    }
}

impl<K> std::fmt::Debug for Event<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self {
            Self::Added { initial: true, .. } => "Listed",
            Self::Added { initial: false, .. } => "Added",
            Self::Updated { .. } => "Updated",
            Self::Deleted { final_state_unknown: true, .. } => "Vanished",
            Self::Deleted { final_state_unknown: false, .. } => "Deleted",
            Self::Resynced { .. } => "Resynced",
            Self::Generic { .. } => "Generic",
        };
        write!(f, "{what}({})", self.object().key())
    }
}
