//! The store in memory: the whole state and its history behind one lock.
//!
//! `State` is plain, synchronous data and makes every decision; this module puts it behind
//! a lock that is never held across an await, and tells watches that the revision moved.
//! A [`Watch`] is a cursor into the state's log (see `watch.rs`), so neither the number nor
//! the speed of readers changes what is kept: only [`Store::compact`] does.

mod state;
mod versions;
mod watch;

use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use futures::future::{self, BoxFuture, FutureExt};
use tokio::sync::watch as revision_channel;

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
    /// Never held across an await, and never while the channel below is used.
    state: RwLock<State>,
    /// The latest revision, sent after the state has it: whoever sees it here finds its
    /// change in the log.
    revision: revision_channel::Sender<Revision>,
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("nothing panics under the lock")
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("nothing panics under the lock")
    }

    /// Wakes the watches. Writers may arrive here in any order, so only a newer revision counts.
    fn announce(&self, revision: Revision) {
        self.revision.send_if_modified(|latest| {
            let newer = revision > *latest;
            *latest = revision.max(*latest);
            newer
        });
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        let state = State::new();
        let (revision, _) = revision_channel::channel(state.revision());
        Self { shared: Arc::new(Shared { state: RwLock::new(state), revision }) }
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
            let written = self.shared.write().write(request)?;
            self.shared.announce(written.revision);
            Ok(written)
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        async move {
            self.shared.read().check_kept(request.after)?;
            let watch: Box<dyn Watch> = Box::new(Cursor::new(Arc::clone(&self.shared), request));
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
