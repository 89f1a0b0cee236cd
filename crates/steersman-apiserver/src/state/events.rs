//! Events as they were written for the first who watches: the same for all who watch a kind in
//! the same form, so they are kept until newer ones displace them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use steersman_store::{Key, Revision};

use crate::negotiate::Output;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl EventType {
    /// As watches tell it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// The events that were written last, for all who watch.
#[derive(Debug, Default)]
pub(crate) struct SharedEvents {
    written: Mutex<Written>,
}

/// How many bytes of events are kept.
const KEPT: usize = 4 * 1024 * 1024;

/// Which change, told as what, in which form. Several objects can change at one revision: those
/// whose time is over go together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Told {
    pub(crate) revision: Revision,
    /// Of the object in the store.
    pub(crate) key: Key,
    pub(crate) kind: EventType,
    pub(crate) output: Output,
}

#[derive(Debug, Default)]
struct Written {
    /// With the version of the kind, for two kinds are served in two.
    events: HashMap<Told, (String, Bytes)>,
    /// The oldest first.
    order: VecDeque<Told>,
    bytes: usize,
}

impl SharedEvents {
    /// The event as it was written before, or as it is written now. Nothing is locked meanwhile:
    /// that two write the same at once does no harm.
    pub(crate) fn get_or_write(
        &self,
        told: Told,
        api_version: &str,
        write: impl FnOnce() -> Vec<u8>,
    ) -> Bytes {
        let kept = |written: &Written| {
            let (version, event) = written.events.get(&told)?;
            (version == api_version).then(|| event.clone())
        };
        if let Some(event) = kept(&self.lock()) {
            return event;
        }
        let mut event = write();
        // It is kept, and counted by its length: the metadata of a large object must not hold the
        // room that was made for all of it.
        event.shrink_to_fit();
        let event = Bytes::from(event);
        self.lock().keep(told, api_version, &event);
        event
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    fn keep(&mut self, told: Told, api_version: &str, event: &Bytes) {
        if event.len() > KEPT / 4 || self.events.contains_key(&told) {
            return;
        }
        self.events.insert(told.clone(), (api_version.to_owned(), event.clone()));
        self.order.push_back(told);
        self.bytes += event.len();
        while self.bytes > KEPT {
            let Some(oldest) = self.order.pop_front() else { return };
            let gone = self.events.remove(&oldest).map_or(0, |(_, event)| event.len());
            self.bytes -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use steersman_store::Revision;

    use super::{EventType, KEPT, SharedEvents, Told};
    use crate::negotiate::{Encoding, Output};

    fn told(revision: u64, encoding: Encoding) -> Told {
        let revision = Revision(revision);
        let kind = EventType::Added;
        let output = Output { encoding, ..Output::default() };
        Told { revision, key: "/registry/pods/a".into(), kind, output }
    }

    #[test]
    fn two_objects_that_change_at_one_revision_are_told_apart() {
        let shared = SharedEvents::default();
        let other = Told { key: "/registry/pods/b".into(), ..told(1, Encoding::Json) };
        shared.get_or_write(told(1, Encoding::Json), "v1", || "a".into());
        assert_eq!(shared.get_or_write(other, "v1", || "b".into()), "b");
    }

    #[test]
    fn an_event_is_written_once_for_each_form() {
        let shared = SharedEvents::default();
        let first = shared.get_or_write(told(1, Encoding::Json), "v1", || "json".into());
        let again = shared.get_or_write(told(1, Encoding::Json), "v1", || panic!("written twice"));
        assert_eq!(first, again);
        let other = shared.get_or_write(told(1, Encoding::Protobuf), "v1", || "other".into());
        assert_eq!(other, "other");
        let version = shared.get_or_write(told(1, Encoding::Json), "v2", || "v2".into());
        assert_eq!(version, "v2");
    }

    #[test]
    fn old_events_are_forgotten_and_memory_is_bounded() {
        let shared = SharedEvents::default();
        let large = vec![0; KEPT / 8];
        for revision in 0..100 {
            shared.get_or_write(told(revision, Encoding::Json), "v1", || large.clone());
        }
        assert!(shared.lock().bytes <= KEPT);
        assert_eq!(shared.lock().events.len(), 8);
        let huge = vec![0; KEPT];
        shared.get_or_write(told(100, Encoding::Json), "v1", || huge);
        assert_eq!(shared.lock().events.len(), 8);
    }

    #[test]
    fn an_event_keeps_no_more_room_than_it_takes() {
        let shared = SharedEvents::default();
        let roomy = || {
            let mut event = Vec::with_capacity(1 << 20);
            event.extend_from_slice(b"short");
            event
        };
        let event = shared.get_or_write(told(1, Encoding::Json), "v1", roomy);
        drop(shared);
        let alone = event.try_into_mut().unwrap();
        assert!(alone.capacity() < 64, "{}", alone.capacity());
    }
}
