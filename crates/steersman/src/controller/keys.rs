//! What a controller remembers of its keys, and when it forgets.
//!
//! Each memory has a lock of its own, since a worker needs most of them for a moment only and
//! some of them never. What keeps them in step is here: a cause is noted before its key is
//! queued, and [`forget`](KeyTable::forget) is the only place that drops what is known of a key
//! because of what became of it. (A cause is used up when its key runs, a deletion when its hook
//! succeeded.)
//! The [queue](crate::workqueue) owns the key's place, its retries and its rate limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::history::History;
use crate::cache::{Event, Untyped};
use crate::cause::{Cause, CauseBook, Noted, Waiting};
use crate::object::ObjectKey;
use crate::own_writes::OwnWrites;
use crate::workqueue::{AddOptions, Priority, WorkQueue};

/// What a controller remembers of its keys.
pub(super) struct KeyTable {
    /// The keys that wait, run and back off.
    pub(super) queue: WorkQueue<ObjectKey>,
    /// Why each of them waits.
    pub(super) causes: CauseBook,
    /// What their reconciles wrote: which of it caches have yet to show, and whether it wakes
    /// them again and again.
    pub(super) own_writes: Arc<OwnWrites>,
    /// Which of them run, ran last, and fail.
    pub(super) history: History,
    /// The versions that finalizers gave to objects whose reconcile then began with that version:
    /// the event of it is news to nobody.
    finalized: Mutex<HashMap<ObjectKey, String>>,
    /// Whether its objects live in namespaces.
    namespaced: bool,
    /// The deletions for which a hook has yet to succeed, if the controller has one.
    deletions: Option<Arc<dyn ForgetKey>>,
}

/// A memory of keys whose type the table does not know.
pub(super) trait ForgetKey: Send + Sync {
    /// Forgets everything about a key.
    fn forget(&self, key: &ObjectKey);
}

/// Why something about a key is forgotten, which decides what is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Its reconcile ended, and is not retried: only its failures are forgotten.
    NotRetried,
    /// Its object is gone, and the hook for deletions is due: what was written for the object is
    /// forgotten, but not how often the hook has failed.
    DeletionPending,
    /// Its object is gone, and nothing is left to do about it.
    Deleted,
    /// Another replica reconciles it from now on, calls the hook for its deletion, and shows how
    /// that goes.
    LeftToAnotherShard,
}

impl KeyTable {
    /// The table of a controller with this many workers.
    pub(super) fn new(
        queue: WorkQueue<ObjectKey>,
        workers: usize,
        namespaced: bool,
        deletions: Option<Arc<dyn ForgetKey>>,
    ) -> Self {
        Self {
            queue,
            causes: CauseBook::default(),
            own_writes: Arc::default(),
            history: History::new(workers),
            finalized: Mutex::default(),
            namespaced,
            deletions,
        }
    }

    /// Asks for a reconcile. The cause is noted first: whoever takes the key finds it.
    pub(super) fn add(&self, key: ObjectKey, cause: impl Into<Noted>, priority: Priority) {
        self.causes.note(&key, cause);
        self.queue.add_with(key, AddOptions { priority: Some(priority), ..AddOptions::default() });
    }

    /// Asks for what somebody named, perhaps without a namespace: then it is in the namespace of
    /// what changed. A key that no object of the kind can have is an error of the author's, who
    /// would otherwise wait for ever.
    pub(super) fn request(
        &self,
        key: ObjectKey,
        namespace: Option<&Arc<str>>,
        cause: impl Into<Noted>,
        priority: Priority,
    ) {
        let key = match (self.namespaced, key.namespace.is_some()) {
            (true, true) | (false, false) => key,
            (true, false) if namespace.is_some() => {
                ObjectKey { namespace: namespace.cloned(), ..key }
            }
            (true, false) => {
                let name = &*key.name;
                tracing::error!(
                    name,
                    "asked to reconcile a name without a namespace, which names nothing: \
                     use `ObjectKey::namespaced` or \"namespace/name\""
                );
                return;
            }
            (false, true) => {
                tracing::error!(
                    %key,
                    "asked to reconcile a key with a namespace, but the kind has none: \
                     use `ObjectKey::named`"
                );
                return;
            }
        };
        self.add(key, cause, priority);
    }

    /// Notes that a reconcile begins with the version that its finalizers gave to the object.
    pub(super) fn begins_finalized(&self, key: &ObjectKey, version: Option<&str>) {
        if let Some(version) = version {
            self.finalized().insert(key.clone(), version.to_owned());
        }
    }

    /// Whether an event only says that the object has its finalizers, of which the reconcile that
    /// put them there knows. Said once.
    pub(super) fn is_own_finalizer(&self, event: &Event<Untyped>) -> bool {
        let Event::Updated { new, .. } = event else { return false };
        let mut finalized = self.finalized();
        let same = |version: &String| new.resource_version() == Some(version);
        finalized.get(new.key()).is_some_and(same) && finalized.remove(new.key()).is_some()
    }

    fn finalized(&self) -> MutexGuard<'_, HashMap<ObjectKey, String>> {
        self.finalized.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a reconcile at `now + delay`, unless something else asks for it earlier.
    pub(super) fn requeue_after(
        &self,
        key: &ObjectKey,
        cause: Cause,
        now: Instant,
        delay: Duration,
    ) {
        self.causes.schedule(key, cause, now.checked_add(delay));
        self.queue.add_after(key.clone(), delay);
    }

    /// Asks for a retry when the rate limiter allows it; gives its number.
    pub(super) fn retry(&self, key: &ObjectKey) -> u32 {
        let retry = self.queue.num_requeues(key) + 1;
        self.causes.schedule(key, Cause::Retry(retry), None);
        self.queue.add_rate_limited(key.clone());
        retry
    }

    /// Puts back a key that was taken and has to wait, but not beyond the time at which it
    /// wanted to come anyway.
    pub(super) fn postpone(&self, key: &ObjectKey, waiting: Waiting, delay: Duration) {
        let due = waiting.due().map(|due| due.saturating_duration_since(Instant::now()));
        self.causes.put_back(key, waiting);
        self.queue.add_after(key.clone(), due.map_or(delay, |due| due.min(delay)));
    }

    /// Forgets what is known of a key, as far as the reason makes it useless: an object that is
    /// gone may be back already, so what waits for its key stays.
    pub(super) fn forget(&self, key: &ObjectKey, why: Why) {
        match why {
            Why::NotRetried => self.queue.forget(key),
            Why::DeletionPending => self.own_writes.forget(key),
            Why::Deleted => {
                self.finalized().remove(key);
                self.own_writes.forget(key);
                self.history.forget(key);
                self.queue.forget(key);
            }
            Why::LeftToAnotherShard => {
                drop(self.causes.take(key));
                self.finalized().remove(key);
                self.own_writes.forget(key);
                self.history.forget(key);
                if let Some(deletions) = &self.deletions {
                    deletions.forget(key);
                }
                self.queue.forget(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::super::record::{Outcome, ReconcileRecord};
    use super::*;
    use crate::cache::{self, OwnWrite};
    use crate::cause::Causes;
    use crate::own_writes::Visibility;

    #[derive(Default)]
    struct Pending(Mutex<Vec<ObjectKey>>);

    impl ForgetKey for Pending {
        fn forget(&self, key: &ObjectKey) {
            self.0.lock().unwrap().retain(|known| known != key);
        }
    }

    /// What is left of a key of which everything was known.
    async fn left_after(why: Why) -> [bool; 5] {
        let key = ObjectKey::from("default/a");
        let pending = Arc::new(Pending(Mutex::new(vec![key.clone()])));
        let table = KeyTable::new(WorkQueue::default(), 1, true, Some(Arc::clone(&pending) as _));
        let (_writer, cache) = cache::channel::<ConfigMap>();
        table.causes.note(&key, Cause::Requested);
        let write = OwnWrite::Version { key: key.clone(), version: 7 };
        table.own_writes.note(&key, Arc::new(cache.cast()), write);
        table.retry(&key);
        table.history.add(&Arc::new(ReconcileRecord {
            controller: "c".into(),
            key: key.clone(),
            id: 1,
            causes: Causes::default(),
            outcome: Outcome::TimedOut,
            started: jiff::Timestamp::UNIX_EPOCH,
            duration: Duration::ZERO,
        }));
        table.forget(&key, why);
        [
            table.causes.why(&key).is_some(),
            table.own_writes.visible(&key).await != Visibility::Visible,
            !table.history.shown().2.is_empty(),
            !pending.0.lock().unwrap().is_empty(),
            table.queue.num_requeues(&key) > 0,
        ]
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_decides_what_is_forgotten_of_a_key() {
        // causes, own writes, failing, pending deletions, retries
        assert_eq!(left_after(Why::NotRetried).await, [true, true, true, true, false]);
        assert_eq!(left_after(Why::DeletionPending).await, [true, false, true, true, true]);
        assert_eq!(left_after(Why::Deleted).await, [true, false, false, true, false]);
        assert_eq!(left_after(Why::LeftToAnotherShard).await, [false; 5]);
    }
}
