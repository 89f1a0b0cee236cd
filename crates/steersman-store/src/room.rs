//! Whether there was room for the last value that was put: a store that is full still answers
//! reads and takes deletions, so nothing else would tell.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{StoreError, Written};

/// What the last put said of the room there is.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Whether there is a refusal, so that a put that finds room pays one load.
    full: AtomicBool,
    refusal: Mutex<Option<StoreError>>,
}

impl Room {
    /// Takes note of what became of a put.
    pub(crate) fn note(&self, written: &Result<Written, StoreError>) {
        let refusal = match written {
            Err(error @ StoreError::Full { .. }) => Some(error.clone()),
            Ok(_) if self.full.load(Ordering::Relaxed) => None,
            _ => return,
        };
        let mut last = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        self.full.store(refusal.is_some(), Ordering::Relaxed);
        *last = refusal;
    }

    /// The refusal of the last put, if there was no room for it.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let last = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::Room;
    use crate::{Revision, StoreError, Written};

    #[test]
    fn what_is_full_has_room_again_once_something_is_put() {
        let room = Room::default();
        let full = StoreError::Full { reason: "no room".to_owned() };
        let written = || Ok(Written { revision: Revision(1), previous: None });
        room.note(&written());
        assert_eq!(room.check(), Ok(()));
        room.note(&Err(full.clone()));
        room.note(&Err(StoreError::Unavailable { reason: "away".to_owned() }));
        assert_eq!(room.check(), Err(full));
        room.note(&written());
        assert_eq!(room.check(), Ok(()));
    }
}
