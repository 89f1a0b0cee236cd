//! The book of causes: why each key waits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use serde::ser::{Serialize, Serializer};
use tokio::time::Instant;

use super::{Cause, Noted, Origin};
use crate::object::ObjectKey;

/// Causes kept per key; more are only counted.
const KEPT: usize = 8;
/// Origins kept per key; with more it is not known who wrote what.
const ORIGINS_KEPT: usize = 64;

/// The causes collected for one reconcile, in the order they came, without repetitions. Cheap
/// to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes(Option<Arc<Collected>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Collected {
    kept: Vec<Cause>,
    /// How many more there were.
    more: usize,
    /// The writes behind them.
    origins: Vec<Origin>,
    /// Whether there were causes without an origin, or too many with one.
    others: bool,
}

impl Causes {
    /// The causes that were kept.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.0.iter().flat_map(|collected| &collected.kept)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether all of them are events that go back to such writes.
    pub(crate) fn all_go_back_to(&self, write: impl FnMut(&Origin) -> bool) -> bool {
        let Some(Collected { origins, others, .. }) = self.0.as_deref() else { return false };
        !others && !origins.is_empty() && origins.iter().all(write)
    }

    fn push(&mut self, noted: impl Into<Noted>) {
        let Noted { cause, origin } = noted.into();
        let collected = Arc::make_mut(self.0.get_or_insert_default());
        match origin {
            Some(origin) if collected.origins.len() < ORIGINS_KEPT => {
                collected.origins.push(origin);
            }
            _ => collected.others = true,
        }
        collected.keep(cause);
    }

    /// Adds what came after these.
    pub(crate) fn extend(&mut self, later: &Self) {
        let Some(later) = &later.0 else { return };
        let collected = Arc::make_mut(self.0.get_or_insert_default());
        collected.origins.extend(&later.origins);
        collected.others |= later.others || collected.origins.len() > ORIGINS_KEPT;
        collected.origins.truncate(ORIGINS_KEPT);
        for cause in &later.kept {
            collected.keep(cause.clone());
        }
        collected.more += later.more;
    }
}

impl Causes {
    /// How many more there were than were kept.
    fn more(&self) -> usize {
        self.0.as_ref().map_or(0, |collected| collected.more)
    }
}

impl Collected {
    fn keep(&mut self, cause: Cause) {
        if self.kept.contains(&cause) {
            return;
        }
        if self.kept.len() < KEPT {
            self.kept.reserve_exact(usize::from(self.kept.is_empty())); // nearly always the only one
            self.kept.push(cause);
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, cause) in self.iter().enumerate() {
            if place > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{cause}")?;
        }
        match self.more() {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl Serialize for Causes {
    /// As a list of texts.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let more = (self.more() > 0).then(|| format!("and {} more", self.more()));
        serializer.collect_seq(self.iter().map(Cause::to_string).chain(more))
    }
}

/// The causes of the keys that wait.
#[derive(Debug, Default)]
pub(crate) struct CauseBook {
    /// Only keys that wait in the queue or in its delays have an entry.
    entries: Mutex<HashMap<ObjectKey, Waiting>>,
}

/// Why a key waits.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) causes: Causes,
    /// Why the key comes if nothing else happens first, and when, if that is known.
    scheduled: Option<(Cause, Option<Instant>)>,
}

impl Waiting {
    /// When the key comes if nothing else happens, if that is known.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.scheduled.as_ref()?.1
    }

    /// Counts what is due, or all there is, among the causes.
    fn with_what_is_due(mut self) -> Self {
        if (self.causes.is_empty() || self.due().is_some_and(|due| due <= Instant::now()))
            && let Some((cause, _)) = self.scheduled.take()
        {
            self.causes.push(cause);
        }
        self
    }
}

impl CauseBook {
    /// Notes why a key is queued now.
    pub(crate) fn note(&self, key: &ObjectKey, cause: impl Into<Noted>) {
        self.lock().entry_ref(key).or_default().causes.push(cause);
    }

    /// Notes why a key will be queued later, unless something happens before; and when, if that
    /// is known.
    pub(crate) fn schedule(&self, key: &ObjectKey, cause: Cause, due: Option<Instant>) {
        self.lock().entry_ref(key).or_default().scheduled = Some((cause, due));
    }

    /// Why a key waits, in words.
    pub(crate) fn why(&self, key: &ObjectKey) -> Option<String> {
        let entries = self.lock();
        let Waiting { causes, scheduled } = entries.get(key)?;
        match (causes.is_empty(), scheduled) {
            (true, scheduled) => scheduled.as_ref().map(|(cause, _)| cause.to_string()),
            (false, _) => Some(causes.to_string()),
        }
    }

    /// Whether a key of this kind waits for nothing but what happened to other objects.
    pub(crate) fn is_news_of_others(&self, kind: &str, key: &ObjectKey) -> bool {
        let of_another = |cause: &Cause| match cause {
            Cause::Event { kind: whose, key: which, .. } => whose != kind || which != key,
            _ => false,
        };
        let entries = self.lock();
        entries.get(key).is_some_and(|waiting| waiting.causes.iter().all(of_another))
    }

    /// Takes the causes of a key whose reconcile begins.
    pub(crate) fn take(&self, key: &ObjectKey) -> Waiting {
        let waiting = self.lock().remove(key);
        waiting.map_or_else(Waiting::default, Waiting::with_what_is_due)
    }

    /// Puts back what was taken of a key that has to wait after all.
    pub(crate) fn put_back(&self, key: &ObjectKey, mut taken: Waiting) {
        match self.lock().entry(key.clone()) {
            Entry::Vacant(entry) => drop(entry.insert(taken)),
            Entry::Occupied(mut entry) => {
                let waiting = entry.get_mut();
                taken.causes.extend(&waiting.causes);
                waiting.causes = taken.causes;
                waiting.scheduled = waiting.scheduled.take().or(taken.scheduled);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Waiting>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ObjectChange;
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
        let causes = book.take(&key).causes;
        assert_eq!(causes.iter().count(), KEPT);
        let text = causes.to_string();
        assert!(text.starts_with("timer; retry 0;") && text.ends_with("and 13 more"), "{text}");
        assert_eq!(book.take(&key).causes, Causes::default());
    }

    #[test]
    fn news_of_others_are_told_from_all_else() {
        let book = CauseBook::default();
        let key = ObjectKey::from("default/a");
        let event = |kind: &str, name: &str| Cause::Event {
            kind: kind.to_owned(),
            key: ObjectKey::from(name),
            change: ObjectChange::Created,
        };
        assert!(!book.is_news_of_others("App", &key), "nothing waits");
        book.note(&key, event("Pod", "default/a"));
        book.note(&key, event("App", "default/b"));
        assert!(book.is_news_of_others("App", &key));
        for other in [event("App", "default/a"), Cause::Timer, Cause::Requested] {
            book.note(&key, other);
            assert!(!book.is_news_of_others("App", &key));
            book.take(&key);
            book.note(&key, event("Pod", "default/a"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_is_a_cause_if_it_is_due_or_nothing_happened_before_it() {
        let book = CauseBook::default();
        let key = ObjectKey::from("default/a");
        let soon = Instant::now() + std::time::Duration::from_secs(1);
        book.schedule(&key, Cause::Timer, Some(soon));
        assert_eq!(book.take(&key).causes.to_string(), "timer");
        book.schedule(&key, Cause::Timer, Some(soon));
        book.note(&key, Cause::Requested);
        assert_eq!(book.take(&key).causes.to_string(), "requested");
        book.schedule(&key, Cause::Timer, Some(soon));
        book.note(&key, Cause::Requested);
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        assert_eq!(book.take(&key).causes.to_string(), "requested; timer");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_put_back_comes_before_what_happened_since() {
        let book = CauseBook::default();
        let key = ObjectKey::from("default/a");
        book.note(&key, Cause::Retry(1));
        let taken = book.take(&key);
        book.note(&key, Cause::Retry(2));
        book.put_back(&key, taken);
        assert_eq!(book.take(&key).causes.to_string(), "retry 1; retry 2");
    }
}
