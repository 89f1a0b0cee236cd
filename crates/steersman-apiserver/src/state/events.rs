//! Events as they were written for the first who watches: the same for all who watch a kind in
//! the same form, so they are kept until newer ones displace them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use steersman_store::Revision;

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

/// Which event, in which form. A revision changes one object, which is of one kind.
type Key = (Revision, EventType, Output);

#[derive(Debug, Default)]
struct Written {
    /// With the version of the kind, for two kinds are served in two.
    events: HashMap<Key, (String, Bytes)>,
    /// The keys, the oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

impl SharedEvents {
    /// The event as it was written before, or as it is written now. Nothing is locked meanwhile:
    /// that two write the same at once does no harm.
    pub(crate) fn get_or_write(
        &self,
        key: Key,
        api_version: &str,
        write: impl FnOnce() -> Bytes,
    ) -> Bytes {
        let kept = |written: &Written| {
            let (version, event) = written.events.get(&key)?;
            (version == api_version).then(|| event.clone())
        };
        if let Some(event) = kept(&self.lock()) {
            return event;
        }
        let event = write();
        self.lock().keep(key, api_version, &event);
        event
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    fn keep(&mut self, key: Key, api_version: &str, event: &Bytes) {
        if event.len() > KEPT / 4 || self.events.contains_key(&key) {
            return;
        }
        self.events.insert(key, (api_version.to_owned(), event.clone()));
        self.order.push_back(key);
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
    use bytes::Bytes;
    use steersman_store::Revision;

    use super::{EventType, KEPT, SharedEvents};
    use crate::negotiate::{Encoding, Output};

    fn key(revision: u64, encoding: Encoding) -> super::Key {
        let output = Output { encoding, ..Output::default() };
        (Revision(revision), EventType::Added, output)
    }

    #[test]
    fn an_event_is_written_once_for_each_form() {
        let shared = SharedEvents::default();
        let first = shared.get_or_write(key(1, Encoding::Json), "v1", || "json".into());
        let again = shared.get_or_write(key(1, Encoding::Json), "v1", || panic!("written twice"));
        assert_eq!(first, again);
        let other = shared.get_or_write(key(1, Encoding::Protobuf), "v1", || "other".into());
        assert_eq!(other, "other");
        let version = shared.get_or_write(key(1, Encoding::Json), "v2", || "v2".into());
        assert_eq!(version, "v2");
    }

    #[test]
    fn old_events_are_forgotten_and_memory_is_bounded() {
        let shared = SharedEvents::default();
        let large = Bytes::from(vec![0; KEPT / 8]);
        for revision in 0..100 {
            shared.get_or_write(key(revision, Encoding::Json), "v1", || large.clone());
        }
        assert!(shared.lock().bytes <= KEPT);
        assert_eq!(shared.lock().events.len(), 8);
        let huge = Bytes::from(vec![0; KEPT]);
        shared.get_or_write(key(100, Encoding::Json), "v1", || huge);
        assert_eq!(shared.lock().events.len(), 8);
    }
}
