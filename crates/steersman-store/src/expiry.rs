//! Keys that go after a while: which are due when, and the task that deletes them.
//!
//! A store tells [`Expiry`] of every write. The first one with a time to live starts the task,
//! which ends with the store. It deletes a key only if it is still as it was written then, so a
//! write that comes first wins, and it deletes by an ordinary write: watches hear of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{Key, Revision, StoreError};

/// How long to wait after a deletion that failed.
const RETRY: Duration = Duration::from_secs(1);

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
        let due = Instant::now() + ttl;
        queue.insert(Key::clone(key), Expiring { revision, ttl, due });
        let is_first = queue.due.first().is_some_and(|(_, first)| first == key);
        let start = !std::mem::replace(&mut queue.running, true);
        drop(queue);
        if start {
            tokio::spawn(Arc::clone(self).run(delete()));
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

    async fn run(self: Arc<Self>, delete: Delete) {
        // A runtime that stops takes the task along; the next write starts another.
        let _running = Running(&self);
        loop {
            let changed = self.changed.notified();
            let next = {
                let queue = self.lock();
                if queue.closed {
                    return;
                }
                queue.due.first().map(|(due, _)| *due)
            };
            match next {
                None => changed.await,
                Some(due) if due <= Instant::now() => {
                    if self.delete_due(&delete).await.is_none() {
                        return;
                    }
                }
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
            }
        }
    }

    /// Deletes the key that is due first; nothing once the store is gone.
    async fn delete_due(&self, delete: &Delete) -> Option<()> {
        let (key, expiring) = self.lock().first()?;
        let deleted = delete(Key::clone(&key), expiring.revision)?.await;
        let mut queue = self.lock();
        if queue.keys.get(&key) != Some(&expiring) {
            return Some(());
        }
        queue.remove(&key);
        if let Err(error) = deleted
            && !matches!(error, StoreError::Conflict { .. })
        {
            tracing::warn!(%error, %key, "cannot delete a key whose time is over; trying again");
            queue.insert(key, Expiring { due: Instant::now() + RETRY, ..expiring });
        }
        Some(())
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

    fn first(&self) -> Option<(Key, Expiring)> {
        let (_, key) = self.due.first()?;
        Some((Key::clone(key), *self.keys.get(key)?))
    }
}

/// Notes the end of the task, however it ends.
struct Running<'a>(&'a Expiry);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().running = false;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::memory::MemoryStore;
    use crate::{Expected, Store, WriteRequest};

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
