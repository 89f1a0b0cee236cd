//! A store that lets others go first, so that what happens at once happens in another order for
//! every seed.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use steersman_store::memory::MemoryStore;
use steersman_store::{
    Entry, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};

/// How often others go first, at most.
const PAUSES_MAX: usize = 8;

/// A store in memory whose answers take a while, and another while for each question.
pub(super) struct Restless {
    store: MemoryStore,
    random: Arc<Mutex<StdRng>>,
}

impl Restless {
    pub(super) fn new(seed: u64) -> Self {
        let random = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
        Self { store: MemoryStore::new(), random }
    }

    async fn pause(&self) {
        let pauses = self.random.lock().unwrap().random_range(0..PAUSES_MAX);
        for _ in 0..pauses {
            tokio::task::yield_now().await;
        }
    }
}

impl Store for Restless {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        let key = key.to_owned();
        Box::pin(async move {
            self.pause().await;
            self.store.get(&key).await
        })
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        Box::pin(async move {
            let range = self.store.range(request).await;
            self.pause().await;
            range
        })
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        Box::pin(async move {
            self.pause().await;
            let written = self.store.write(request).await;
            self.pause().await;
            written
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        self.store.watch(request)
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.compact(revision)
    }
}
