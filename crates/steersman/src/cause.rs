//! Why a key is reconciled: the answer travels beside the key.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::informer::Event;
use crate::object::{Cacheable, ObjectKey};

/// Causes kept per key; more are only counted.
const KEPT: usize = 8;

/// One reason for a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An object changed.
    Event {
        /// Its kind.
        kind: String,
        /// Which object.
        key: ObjectKey,
        /// What happened to it.
        change: ObjectChange,
    },
    /// The last reconcile failed; this is the retry with this number.
    Retry(u32),
    /// The last reconcile asked to be called again after a time.
    Timer,
    /// Somebody asked for it without an event.
    Requested,
    /// A source of the controller's own asked for it: a channel, a stream, a clock.
    Source(Arc<str>),
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// It was there when the controller started.
    Listed,
    /// It was created.
    Created,
    /// Its desired state changed.
    SpecChanged,
    /// Something else changed: status, labels, annotations.
    Updated,
    /// Its deletion began.
    Deleting,
    /// It is gone.
    Deleted,
    /// Nothing happened to it; it was time to look at everything again.
    Resynced,
    /// Nothing is known to have happened to it; somebody outside of the cluster pointed at it.
    Generic,
}

impl Cause {
    /// The cause that an event of this kind is.
    pub(crate) fn of<K: Cacheable>(kind: &str, event: &Event<K>) -> Self {
        let change = match event {
            Event::Added { initial: true, .. } => ObjectChange::Listed,
            Event::Added { initial: false, .. } => ObjectChange::Created,
            Event::Updated { old, new } => match (old.meta(), new.meta()) {
                (Some(old), Some(new)) => updated(&old, &new),
                _ => ObjectChange::Updated,
            },
            Event::Deleted { .. } => ObjectChange::Deleted,
            Event::Resynced { .. } => ObjectChange::Resynced,
            Event::Generic { .. } => ObjectChange::Generic,
        };
        Self::Event { kind: kind.to_owned(), key: event.object().key().clone(), change }
    }
}

fn updated(old: &ObjectMeta, new: &ObjectMeta) -> ObjectChange {
    if old.deletion_timestamp.is_none() && new.deletion_timestamp.is_some() {
        ObjectChange::Deleting
    } else if old.generation != new.generation {
        ObjectChange::SpecChanged
    } else {
        ObjectChange::Updated
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { kind, key, change } => write!(f, "{kind} {key} {change}"),
            Self::Retry(count) => write!(f, "retry {count}"),
            Self::Timer => f.write_str("timer"),
            Self::Requested => f.write_str("requested"),
            Self::Source(name) => write!(f, "asked for by {name}"),
        }
    }
}

impl fmt::Display for ObjectChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "was there at the start",
            Self::Created => "created",
            Self::SpecChanged => "changed its spec",
            Self::Updated => "updated",
            Self::Deleting => "is being deleted",
            Self::Deleted => "deleted",
            Self::Resynced => "resynced",
            Self::Generic => "was pointed at",
        })
    }
}

/// The causes collected for one reconcile, in the order they came, without repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    kept: Vec<Cause>,
    /// How many more there were.
    more: usize,
}

impl Causes {
    /// The causes that were kept.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.kept.iter()
    }

    fn push(&mut self, cause: Cause) {
        if self.kept.contains(&cause) {
            return;
        }
        if self.kept.len() < KEPT {
            self.kept.push(cause);
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.kept.iter().map(Cause::to_string).collect();
        f.write_str(&texts.join("; "))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// The causes of the keys that wait.
#[derive(Debug, Default)]
pub(crate) struct CauseBook {
    /// Only keys that wait in the queue or in its delays have an entry.
    entries: Mutex<HashMap<ObjectKey, BookEntry>>,
}

#[derive(Debug, Default)]
struct BookEntry {
    causes: Causes,
    /// Why the key comes if nothing else happens first: a timer, a retry.
    scheduled: Option<Cause>,
}

impl CauseBook {
    /// Notes why a key is queued now.
    pub(crate) fn note(&self, key: &ObjectKey, cause: Cause) {
        self.lock().entry(key.clone()).or_default().causes.push(cause);
    }

    /// Notes why a key will be queued later, unless something happens before.
    pub(crate) fn schedule(&self, key: &ObjectKey, cause: Cause) {
        self.lock().entry(key.clone()).or_default().scheduled = Some(cause);
    }

    /// Why a key waits, in words.
    pub(crate) fn why(&self, key: &ObjectKey) -> Option<String> {
        let entries = self.lock();
        let BookEntry { causes, scheduled } = entries.get(key)?;
        match (causes.kept.is_empty(), scheduled) {
            (true, scheduled) => scheduled.as_ref().map(Cause::to_string),
            (false, _) => Some(causes.to_string()),
        }
    }

    /// Takes the causes of a key whose reconcile begins.
    pub(crate) fn take(&self, key: &ObjectKey) -> Causes {
        let Some(BookEntry { mut causes, scheduled }) = self.lock().remove(key) else {
            return Causes::default();
        };
        if causes.kept.is_empty() {
            causes.kept.extend(scheduled);
        }
        causes
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, BookEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_kept_in_order_without_repetition_and_bounded() {
        let book = CauseBook::default();
        let key = ObjectKey::from("default/a");
        book.note(&key, Cause::Timer);
        book.note(&key, Cause::Timer);
        for count in 0..20 {
            book.note(&key, Cause::Retry(count));
        }
        let causes = book.take(&key);
        assert_eq!(causes.iter().count(), KEPT);
        let text = causes.to_string();
        assert!(text.starts_with("timer; retry 0;") && text.ends_with("and 13 more"), "{text}");
        assert_eq!(book.take(&key), Causes::default());
    }

    #[test]
    fn a_timer_is_the_cause_only_if_nothing_happened_before_it() {
        let book = CauseBook::default();
        let key = ObjectKey::from("default/a");
        book.schedule(&key, Cause::Timer);
        assert_eq!(book.take(&key).to_string(), "timer");
        book.schedule(&key, Cause::Timer);
        book.note(&key, Cause::Requested);
        assert_eq!(book.take(&key).to_string(), "requested");
    }
}
