//! The store in memory: the index, and nothing else.

use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};

use crate::expiry::{Delete, Expiry};
use crate::index::Index;
pub use crate::index::Stats;
use crate::{
    Entry, Expected, HISTORY_BYTES, RangeRequest, RangeResponse, Revision, Store, StoreError,
    Watch, WatchRequest, WriteRequest, Written,
};

/// A [`Store`] that keeps everything in memory and forgets it when dropped.
///
/// Cloning is cheap and gives another handle to the same store; [`fork`](Self::fork) gives
/// another store. An empty store is at revision 1, so that zero stays free to mean "before
/// everything".
///
/// Values are kept as they are given: a [`bytes::Bytes`] that is a slice of a larger buffer
/// keeps that buffer alive.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    index: Arc<Index>,
    expiry: Arc<Expiry>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::with_history(HISTORY_BYTES)
    }

    /// An empty store that keeps at most so many bytes of the past. What is older is gone as if it
    /// had been compacted; the latest value of each key stays in any case.
    pub fn with_history(bytes: u64) -> Self {
        Self::over(Index::new(bytes))
    }

    /// Another store that holds the same, history included, and from here on goes its own way.
    /// Values are shared, so this takes a few words and well under a microsecond a key. Nobody
    /// watches it yet; keys that go after a while go after as long again.
    pub fn fork(&self) -> Self {
        let fork = Self::over(self.shared.index.fork());
        for (key, expiring) in self.shared.expiry.all() {
            let revision = expiring.revision;
            let ttl = Some(expiring.ttl);
            fork.shared.expiry.written(&key, revision, ttl, || fork.delete());
        }
        fork
    }

    /// How large the store is now.
    pub fn stats(&self) -> Stats {
        self.shared.index.stats()
    }

    fn over(index: Index) -> Self {
        Self { shared: Arc::new(Shared { index: Arc::new(index), expiry: Arc::default() }) }
    }

    /// Deletes what has expired, as long as the store is there.
    fn delete(&self) -> Delete {
        let shared = Arc::downgrade(&self.shared);
        Arc::new(move |key, modified| {
            let store = Self { shared: shared.upgrade()? };
            let request = WriteRequest::delete(key, Expected::Modified(modified));
            Some(async move { store.write(request).await.map(drop) }.boxed())
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.expiry.close();
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
        let entry = self.shared.index.get(key);
        future::ready(Ok(entry)).boxed()
    }

    fn known(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        future::ready(self.shared.index.at(key, at)).boxed()
    }

    fn modified(
        &self,
        key: &str,
        at: Revision,
    ) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        future::ready(self.shared.index.modified(key, at)).boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        async move { self.shared.index.range(&request) }.boxed()
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        async move {
            let key = Arc::clone(&request.key);
            let ttl = request.ttl;
            let written = self.shared.index.decide(request)?;
            self.shared.expiry.written(&key, written.revision, ttl, || self.delete());
            Ok(written)
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        async move { self.shared.index.watch(request) }.boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.shared.index.compact(revision).boxed()
    }

    fn hold_compactly(&self, folder: &str) {
        self.shared.index.hold_compactly(folder);
    }
}
