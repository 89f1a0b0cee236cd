//! A store that can be told to misbehave: to panic, or to hold a write back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use steersman_store::memory::MemoryStore;
use steersman_store::{
    Entry, Event, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};
use tokio::sync::Semaphore;

/// A store in memory with faults.
#[derive(Clone)]
pub(crate) struct Faulty {
    store: Arc<MemoryStore>,
    /// Whether reading panics.
    pub(crate) panics: Arc<AtomicBool>,
    held: Arc<Mutex<Option<String>>>,
    arrived: Arc<Semaphore>,
    released: Arc<Semaphore>,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            panics: Arc::default(),
            held: Arc::default(),
            arrived: Arc::new(Semaphore::new(0)),
            released: Arc::new(Semaphore::new(0)),
        }
    }

    /// Holds the next write of this key back.
    pub(crate) fn hold(&self, key: &str) {
        *self.held.lock().unwrap() = Some(key.to_owned());
    }

    /// Waits until the write that is held back has come.
    pub(crate) async fn held(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }

    /// Lets the write go on.
    pub(crate) fn release(&self) {
        self.released.add_permits(1);
    }

    fn may_panic(&self) {
        assert!(!self.panics.load(Ordering::SeqCst), "the store is told to panic");
    }
}

impl Store for Faulty {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        self.may_panic();
        self.store.get(key)
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        self.store.range(request)
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        Box::pin(async move {
            let wanted = self.held.lock().unwrap().take_if(|held| **held == *request.key).is_some();
            if wanted {
                self.arrived.add_permits(1);
                self.released.acquire().await.unwrap().forget();
            }
            self.store.write(request).await
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            let watch = self.store.watch(request).await?;
            Ok(Box::new(FaultyWatch { watch, store: self.clone() }) as Box<dyn Watch>)
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.compact(revision)
    }
}

struct FaultyWatch {
    watch: Box<dyn Watch>,
    store: Faulty,
}

impl Watch for FaultyWatch {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(async move {
            let events = self.watch.next().await;
            self.store.may_panic();
            events
        })
    }

    fn delivered(&mut self) -> Revision {
        self.watch.delivered()
    }
}
