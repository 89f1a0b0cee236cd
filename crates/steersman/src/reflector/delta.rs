//! What a reflector learns, and how two pieces of it become one.

use super::Keyed;
use crate::delta_queue::{Coalesce, Merged, Receiver, Sweep};
use crate::object::ObjectKey;

/// What the reflector learned.
#[derive(Debug)]
pub enum Delta<T> {
    /// The whole state at a version. What is neither in `objects` nor in `skipped` does not
    /// exist.
    Replaced {
        /// Every object that could be decoded. Should a key occur twice, the later one holds.
        objects: Vec<T>,
        /// The objects that exist and could not be decoded: what is known of them stays.
        skipped: Vec<ObjectKey>,
        /// The version of the state; `None` if it is not a number, or if the kind is no longer
        /// served.
        version: Option<u64>,
    },
    /// An object was created or changed.
    Applied(T),
    /// An object was read by itself, because what is known of it seemed to be old. It may be ahead
    /// of what else was delivered: events of earlier versions are still to come, and say nothing
    /// new of it.
    Reread(T),
    /// An object was deleted; this is its last state.
    Deleted(T),
    /// An object was deleted, and its last state could not be decoded.
    DeletedKey {
        /// The object.
        key: ObjectKey,
        /// The version of the deletion.
        version: Option<u64>,
    },
    /// Everything up to this version has been delivered.
    Bookmark {
        /// The version.
        version: Option<u64>,
    },
}

/// What a reflector learned and nobody has taken yet. Dropping it ends the reflector.
pub struct Deltas<T>(pub(super) Receiver<Delta<T>>);

impl<T> Deltas<T> {
    /// Waits until there are deltas and takes up to `max` of them, in order. An empty batch means
    /// that there will never be any more. A dropped future has taken nothing.
    pub async fn pop_batch(&mut self, max: usize) -> Vec<Delta<T>> {
        self.0.pop_batch(max).await
    }
}

/// The later event of an object says it all. A deletion followed by a new object of the same
/// name becomes that object: its uid tells a cache that the former one is gone.
///
/// Where deltas are merged, versions are approximate: who received an object's version need not
/// have received every older change of the others. A [`Delta::Replaced`] makes what waits
/// before it superfluous, unless it skipped objects: then it is a barrier, before which
/// everything stays and across which nothing is merged.
impl<T: Keyed> Coalesce for Delta<T> {
    fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Applied(object) | Self::Reread(object) | Self::Deleted(object) => {
                Some(object.key())
            }
            Self::DeletedKey { key, .. } => Some(key.clone()),
            Self::Replaced { .. } | Self::Bookmark { .. } => None,
        }
    }

    fn merge(earlier: Self, later: Self) -> Merged<Self> {
        match earlier {
            // It may be newer than what comes after it.
            Self::Reread(_) => Merged::Both(earlier, later),
            _ => Merged::One(later),
        }
    }

    fn sweep(&self) -> Sweep {
        match self {
            // Objects that were skipped keep the state in which they were last delivered.
            Self::Replaced { skipped, .. } if skipped.is_empty() => Sweep::Reset,
            Self::Bookmark { .. } => Sweep::Mark,
            _ => Sweep::Barrier,
        }
    }
}
