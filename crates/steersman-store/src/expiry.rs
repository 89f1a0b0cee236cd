//! Keys that go after a while: which are due when, and the task that deletes them.
//!
//! A store tells [`Expiry`] of every write. The first one with a time to live starts the task,
//! which ends with the store. It deletes a key only if it is still as it was written then, so a
//! write that comes first wins, and it deletes by an ordinary write: watches hear of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{Key, Revision, StoreError};

/// How long to wait after deletions that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Keys that are deleted at the same time, at most. One after the other they could come slower
/// than they go: each waits for the disk, or for etcd.
const TOGETHER: usize = 128;

/// What stays longer than this stays that long: a thousand years, which every clock can add.
pub(crate) const TTL_MAX: Duration = Duration::from_secs(1_000 * 365 * 24 * 60 * 60);

/// Deletes a key if it was last modified at the revision; nothing once the store is gone.
pub(crate) type Delete = Arc<dyn Fn(Key, Revision) -> Option<Deleting> + Send + Sync>;

/// A deletion under way.
pub(crate) type Deleting = BoxFuture<'static, Result<(), StoreError>>;

/// Which keys go when.
#[derive(Default)]
pub(crate) struct Expiry {
    queue: Mutex<Queue>,
    /// The queue has another head, or the store is gone.
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    keys: HashMap<Key, Expiring>,
    due: BTreeSet<(Instant, Key)>,
    running: bool,
    closed: bool,
}

/// A key that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiring {
    /// The write that said so.
    pub(crate) revision: Revision,
    /// How long after it.
    pub(crate) ttl: Duration,
    due: Instant,
}

impl Expiry {
    /// Notes a write: with a time to live the key goes after it, without one it stays.
    pub(crate) fn written(
        self: &Arc<Self>,
        key: &Key,
        revision: Revision,
        ttl: Option<Duration>,
        delete: impl FnOnce() -> Delete,
    ) {
        let mut queue = self.lock();
        // Writers tell of their writes in any order.
        if queue.keys.get(key).is_some_and(|known| known.revision > revision) {
            return;
        }
        queue.remove(key);
        let Some(ttl) = ttl else { return };
        let due = Instant::now() + ttl.min(TTL_MAX);
        queue.insert(Key::clone(key), Expiring { revision, ttl, due });
        let is_first = queue.due.first().is_some_and(|(_, first)| first == key);
        let start = !std::mem::replace(&mut queue.running, true);
        drop(queue);
        if start {
            tokio::spawn(run(Running(Arc::clone(self)), delete()));
        } else if is_first {
            self.changed.notify_one();
        }
    }

    /// What is known of a key that goes.
    pub(crate) fn of(&self, key: &str) -> Option<Expiring> {
        self.lock().keys.get(key).copied()
    }

    /// Every key that goes.
    pub(crate) fn all(&self) -> Vec<(Key, Expiring)> {
        let queue = self.lock();
        queue.keys.iter().map(|(key, expiring)| (Key::clone(key), *expiring)).collect()
    }

    /// Ends the task.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Deletes keys that are due, as many as may be at the same time. Says whether the store is
    /// still there.
    async fn delete_due(&self, delete: &Delete) -> bool {
        let due = self.lock().due();
        let mut deleting = Vec::new();
        let mut keys = Vec::new();
        for (key, expiring) in due {
            let Some(deletion) = delete(Key::clone(&key), expiring.revision) else { return false };
            deleting.push(deletion);
            keys.push((key, expiring));
        }
        let deleted = join_all(deleting).await;
        let failed = self.note(keys.into_iter().zip(deleted));
        if let Some((key, error)) = failed {
            // Once for all of them, and at most as often as it is tried again.
            tracing::warn!(%error, %key, "expired keys could not be deleted; retrying");
            tokio::time::sleep(RETRY).await;
        }
        true
    }

    /// Forgets what was deleted, or written again. Says which one is still to be deleted, if any.
    fn note(
        &self,
        tried: impl Iterator<Item = ((Key, Expiring), Result<(), StoreError>)>,
    ) -> Option<(Key, StoreError)> {
        let mut queue = self.lock();
        let mut failed = None;
        for ((key, expiring), deleted) in tried {
            match deleted {
                Ok(()) | Err(StoreError::Conflict { .. }) => {
                    if queue.keys.get(&key) == Some(&expiring) {
                        queue.remove(&key);
                    }
                }
                Err(error) => failed = Some((key, error)),
            }
        }
        failed
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn insert(&mut self, key: Key, expiring: Expiring) {
        self.due.insert((expiring.due, Key::clone(&key)));
        self.keys.insert(key, expiring);
    }

    fn remove(&mut self, key: &Key) {
        if let Some(expiring) = self.keys.remove(key) {
            self.due.remove(&(expiring.due, Key::clone(key)));
        }
    }

    /// The keys that are due first.
    fn due(&self) -> Vec<(Key, Expiring)> {
        let now = Instant::now();
        let due = self.due.iter().take_while(|(due, _)| *due <= now).take(TOGETHER);
        due.filter_map(|(_, key)| Some((Key::clone(key), *self.keys.get(key)?))).collect()
    }
}

/// The task: deletes each key when it is due, until the store is gone.
async fn run(running: Running, delete: Delete) {
    let expiry = &running.0;
    loop {
        let changed = expiry.changed.notified();
        let next = {
            let queue = expiry.lock();
            if queue.closed {
                return;
            }
            queue.due.first().map(|(due, _)| *due)
        };
        match next {
            None => changed.await,
            Some(due) if due <= Instant::now() => {
                if !expiry.delete_due(&delete).await {
                    return;
                }
            }
            Some(due) => {
                let _ = tokio::time::timeout_at(due, changed).await;
            }
        }
    }
}

/// Notes the end of the task, also if it never ran: a runtime that stops takes it along, and the
/// next write starts another.
struct Running(Arc<Expiry>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().running = false;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::FutureExt;

    use super::{Delete, Expiry};
    use crate::memory::MemoryStore;
    use crate::{Expected, Key, Revision, Store, StoreError, WriteRequest};

    const MINUTE: Duration = Duration::from_secs(60);

    async fn put(store: &MemoryStore, key: &str, ttl: Option<Duration>) {
        let request = WriteRequest { ttl, ..WriteRequest::put(key, "value", Expected::Any) };
        store.write(request).await.unwrap();
    }

    async fn exists(store: &MemoryStore, key: &str) -> bool {
        store.get(key).await.unwrap().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_goes_when_its_time_is_over_and_not_before() {
        let store = MemoryStore::new();
        put(&store, "/long", Some(2 * MINUTE)).await;
        put(&store, "/short", Some(MINUTE)).await;
        tokio::time::sleep(MINUTE - Duration::from_secs(1)).await;
        assert!(exists(&store, "/short").await);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!exists(&store, "/short").await);
        assert!(exists(&store, "/long").await);
        tokio::time::sleep(MINUTE).await;
        assert!(!exists(&store, "/long").await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_write_decides_how_long_a_key_stays() {
        let store = MemoryStore::new();
        put(&store, "/longer", Some(MINUTE)).await;
        put(&store, "/for-ever", Some(MINUTE)).await;
        tokio::time::sleep(MINUTE / 2).await;
        put(&store, "/longer", Some(MINUTE)).await;
        put(&store, "/for-ever", None).await;
        tokio::time::sleep(MINUTE - Duration::from_secs(1)).await;
        assert!(exists(&store, "/longer").await);
        tokio::time::sleep(10 * MINUTE).await;
        assert!(!exists(&store, "/longer").await);
        assert!(exists(&store, "/for-ever").await);
    }

    /// An expiry with so many keys, whose store takes a second for each deletion and answers as
    /// it is told; and how often it was asked.
    fn expiring(
        keys: usize,
        answer: impl Fn() -> Result<(), StoreError> + Send + Sync + 'static,
    ) -> (Arc<Expiry>, Arc<AtomicUsize>) {
        let (expiry, asked) = (Arc::<Expiry>::default(), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&asked);
        let delete: Delete = Arc::new(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            let answer = answer();
            Some(tokio::time::sleep(Duration::from_secs(1)).map(|()| answer).boxed())
        });
        for number in 0..keys {
            let key = Key::from(format!("/{number}"));
            expiry.written(&key, Revision(2), Some(MINUTE), || Arc::clone(&delete));
        }
        (expiry, asked)
    }

    #[tokio::test(start_paused = true)]
    async fn many_keys_go_at_the_same_time() {
        let (expiry, asked) = expiring(1_000, || Ok(()));
        tokio::time::sleep(MINUTE + Duration::from_secs(10)).await;
        assert_eq!((asked.load(Ordering::Relaxed), expiry.all().len()), (1_000, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_deletes_nothing_is_not_asked_without_a_pause() {
        let full = || Err(StoreError::Full { reason: "no room".to_owned() });
        let (expiry, asked) = expiring(1_000, full);
        tokio::time::sleep(MINUTE + Duration::from_secs(10)).await;
        let asked = asked.load(Ordering::Relaxed);
        assert!((5 * 100..7 * 128).contains(&asked), "{asked}");
        assert_eq!(expiry.all().len(), 1_000, "they are still to go");
        expiry.close();
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_may_stay_longer_than_any_clock_runs() {
        let store = MemoryStore::new();
        put(&store, "/a", Some(Duration::MAX)).await;
        assert!(exists(&store, "/a").await);
    }

    #[test]
    fn a_runtime_that_ends_before_the_task_ran_leaves_it_to_the_next() {
        let store = MemoryStore::new();
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_time().start_paused(true).build().unwrap()
        };
        runtime().block_on(put(&store, "/a", Some(MINUTE)));
        runtime().block_on(async {
            put(&store, "/b", Some(MINUTE)).await;
            tokio::time::sleep(2 * MINUTE).await;
            assert!(!exists(&store, "/b").await);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn the_keys_of_a_fork_go_too() {
        let store = MemoryStore::new();
        put(&store, "/a", Some(MINUTE)).await;
        let fork = store.fork();
        drop(store);
        tokio::time::sleep(2 * MINUTE).await;
        assert!(!exists(&fork, "/a").await);
    }
}
