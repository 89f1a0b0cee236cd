//! The store in memory: the whole state and its history behind one lock.
//!
//! `State` is plain, synchronous data and makes every decision; this module puts it behind
//! a lock that is never held across an await, and wakes the watches that a change concerns.
//! A [`Watch`] is a cursor into the state's log (see `watch.rs`), so neither the number nor
//! the speed of readers changes what is kept: only [`Store::compact`] does.

mod folders;
mod state;
mod topics;
mod versions;
mod watch;

use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use futures::future::{self, BoxFuture, FutureExt};

use self::state::State;
use self::watch::Cursor;
use crate::{
    Entry, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};

/// A [`Store`] that keeps everything in memory and forgets it when dropped.
///
/// Cloning is cheap and gives another handle to the same store. An empty store is at
/// revision 1, so that zero stays free to mean "before everything".
///
/// Values are kept as they are given: a [`bytes::Bytes`] that is a slice of a larger buffer
/// keeps that buffer alive.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

/// How large a [`MemoryStore`] is at this moment; for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Keys that exist at the latest revision.
    pub keys: usize,
    /// Changes that watches can still resume from.
    pub history: usize,
    /// The oldest revision that can still be read.
    pub oldest: Revision,
    /// The latest revision.
    pub revision: Revision,
}

/// What the handles and the watches of one store share.
struct Shared {
    /// Never held across an await, nor while watches are woken.
    state: RwLock<State>,
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("nothing panics under the lock")
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("nothing panics under the lock")
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self { shared: Arc::new(Shared { state: RwLock::new(State::new()) }) }
    }

    /// How large the store is now.
    pub fn stats(&self) -> Stats {
        self.shared.read().stats()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MemoryStore").field(&self.stats()).finish()
    }
}

impl Store for MemoryStore {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        let entry = self.shared.read().get(key);
        future::ready(Ok(entry)).boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        async move { self.shared.read().range(&request) }.boxed()
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        async move {
            let (written, concerned) = self.shared.write().write(request)?;
            concerned.iter().for_each(|topic| topic.wake());
            Ok(written)
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        async move {
            let watch: Box<dyn Watch> = Box::new(Cursor::new(Arc::clone(&self.shared), request)?);
            Ok(watch)
        }
        .boxed()
    }

    /// Works in short steps and lets others in between, so that a long history does not stop
    /// the store. Cancelled half-way it has compacted to an earlier revision.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            // The guard must be gone before the await, hence no `while` on the call itself.
            loop {
                let finished = self.shared.write().compact_step(revision)?;
                if finished {
                    return Ok(());
                }
                tokio::task::yield_now().await;
            }
        }
        .boxed()
    }
}
