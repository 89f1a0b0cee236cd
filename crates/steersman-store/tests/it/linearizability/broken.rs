//! Stores that do now and then what a store must not do.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::{BoxFuture, FutureExt};
use steersman_store::memory::MemoryStore;
use steersman_store::{
    Entry, Expected, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};

/// How often a store is broken: one in so many times.
const EVERY: u64 = 20;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A get answers what an earlier one found.
    StaleGets,
    /// A range answers the state of a while ago.
    StaleRanges,
    /// A write happens although the key is not as expected.
    LostChecks,
    /// A write is acknowledged and forgotten.
    LostWrites,
}

/// A store with a fault.
pub(super) struct Broken {
    inner: MemoryStore,
    fault: Fault,
    operations: AtomicU64,
    /// What the first get of a key found since the fault struck it.
    found: Mutex<HashMap<String, Option<Entry>>>,
}

impl Broken {
    pub(super) fn new(fault: Fault) -> Self {
        let (operations, found) = (AtomicU64::new(0), Mutex::default());
        Self { inner: MemoryStore::new(), fault, operations, found }
    }

    fn strikes(&self, fault: Fault) -> bool {
        self.fault == fault && self.operations.fetch_add(1, Ordering::SeqCst) % EVERY == EVERY - 1
    }

    async fn forget(&self, request: WriteRequest) -> Result<Written, StoreError> {
        let before = self.inner.get(&request.key).await?;
        let key = request.key.clone();
        let written = self.inner.write(request).await?;
        if let Some(before) = before {
            // What it held before is there again, as if nothing had been written.
            let undo = WriteRequest::put(key, before.value, Expected::Modified(written.revision));
            let _ = self.inner.write(undo).await;
        }
        Ok(written)
    }
}

impl Store for Broken {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        let key = key.to_owned();
        async move {
            let found = self.inner.get(&key).await?;
            let strikes = self.strikes(Fault::StaleGets);
            let mut before = self.found.lock().unwrap();
            if strikes {
                return Ok(before.remove(&key).unwrap_or(found));
            }
            before.entry(key).or_insert_with(|| found.clone());
            Ok(found)
        }
        .boxed()
    }

    fn range(&self, mut request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        if self.strikes(Fault::StaleRanges) {
            let now = self.inner.stats().revision;
            request.at = Some(Revision(now.0.saturating_sub(3).max(1)));
        }
        self.inner.range(request)
    }

    fn write(&self, mut request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        if self.strikes(Fault::LostWrites) {
            return self.forget(request).boxed();
        }
        if self.strikes(Fault::LostChecks) {
            request.expected = Expected::Any;
        }
        self.inner.write(request)
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        self.inner.watch(request)
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.compact(revision)
    }
}
