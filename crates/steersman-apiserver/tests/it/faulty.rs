//! A store that can be told to misbehave: to panic, to hold a write back, to fail, to lag behind.
//! It also counts what it is asked.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// What everything but a stale read fails with.
    fails: Arc<Mutex<Option<StoreError>>>,
    /// Why it takes no more writes. Reads go on.
    broken: Arc<Mutex<Option<StoreError>>>,
    /// The prefix of the next key whose write is done, and then said to be unknown.
    unknown: Arc<Mutex<Option<String>>>,
    /// As of when stale reads are answered.
    lags: Arc<Mutex<Option<Revision>>>,
    /// Whether what a watch gives at once has happened at one revision.
    pub(crate) together: Arc<AtomicBool>,
    /// Whether watches that begin never give anything.
    pub(crate) deaf: Arc<AtomicBool>,
    /// Whether reads are never answered.
    pub(crate) silent: Arc<AtomicBool>,
    asked: Arc<Asked>,
}

/// How often a store was asked what.
#[derive(Debug, Default)]
struct Asked {
    reads: AtomicUsize,
    stale: AtomicUsize,
    writes: AtomicUsize,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            panics: Arc::default(),
            held: Arc::default(),
            arrived: Arc::new(Semaphore::new(0)),
            released: Arc::new(Semaphore::new(0)),
            fails: Arc::default(),
            broken: Arc::default(),
            unknown: Arc::default(),
            lags: Arc::default(),
            together: Arc::default(),
            deaf: Arc::default(),
            silent: Arc::default(),
            asked: Arc::default(),
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

    /// Fails from now on, or no more.
    pub(crate) fn fail(&self, error: Option<StoreError>) {
        *self.fails.lock().unwrap() = error;
    }

    /// Takes no more writes, or takes them again.
    pub(crate) fn break_down(&self, error: Option<StoreError>) {
        *self.broken.lock().unwrap() = error;
    }

    /// Does the next write of a key that begins so, and does not say so.
    pub(crate) fn forget_answer(&self, prefix: &str) {
        *self.unknown.lock().unwrap() = Some(prefix.to_owned());
    }

    /// Answers stale reads as of now from now on, or no more.
    pub(crate) fn lag(&self, behind: bool) {
        *self.lags.lock().unwrap() = behind.then(|| self.store.stats().revision);
    }

    /// How often it was asked since the last time: for reads that show everything, for stale
    /// ones, and to write.
    pub(crate) fn counts(&self) -> [usize; 3] {
        let Asked { reads, stale, writes } = &*self.asked;
        [reads, stale, writes].map(|count| count.swap(0, Ordering::SeqCst))
    }

    fn may_panic(&self) {
        assert!(!self.panics.load(Ordering::SeqCst), "the store is told to panic");
    }

    async fn may_answer(&self) {
        if self.silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    fn may_fail(&self) -> Result<(), StoreError> {
        self.fails.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

impl Store for Faulty {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        self.may_panic();
        self.asked.reads.fetch_add(1, Ordering::SeqCst);
        let got = self.store.get(key);
        Box::pin(async move {
            self.may_answer().await;
            self.may_fail()?;
            got.await
        })
    }

    fn range(&self, mut request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        Box::pin(async move {
            self.may_answer().await;
            if request.stale {
                self.asked.stale.fetch_add(1, Ordering::SeqCst);
                request.at = request.at.or(*self.lags.lock().unwrap());
            } else {
                self.asked.reads.fetch_add(1, Ordering::SeqCst);
                self.may_fail()?;
            }
            self.store.range(request).await
        })
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        Box::pin(async move {
            self.asked.writes.fetch_add(1, Ordering::SeqCst);
            let wanted = self.held.lock().unwrap().take_if(|held| **held == *request.key).is_some();
            if wanted {
                self.arrived.add_permits(1);
                self.released.acquire().await.unwrap().forget();
            }
            self.may_fail()?;
            self.health()?;
            let is_unknown = |prefix: &mut String| request.key.starts_with(prefix.as_str());
            let unknown = self.unknown.lock().unwrap().take_if(is_unknown).is_some();
            let written = self.store.write(request).await?;
            if unknown {
                return Err(StoreError::Unknown { reason: "no answer".to_owned() });
            }
            Ok(written)
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            self.may_fail()?;
            let watch = self.store.watch(request).await?;
            let is_deaf = self.deaf.load(Ordering::SeqCst);
            Ok(Box::new(FaultyWatch { watch, store: self.clone(), is_deaf }) as Box<dyn Watch>)
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.compact(revision)
    }

    fn health(&self) -> Result<(), StoreError> {
        self.broken.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

/// The same change, at another revision.
fn at(revision: Revision, event: &Event) -> Event {
    let current = event.current.clone().map(|entry| Entry { modified: revision, ..entry });
    Event { revision, current, ..event.clone() }
}

struct FaultyWatch {
    watch: Box<dyn Watch>,
    store: Faulty,
    is_deaf: bool,
}

impl Watch for FaultyWatch {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(async move {
            if self.is_deaf {
                return std::future::pending().await;
            }
            let events = self.watch.next().await;
            self.store.may_panic();
            self.store.may_fail()?;
            let events = events?;
            let Some(last) = events.last().map(|event| event.revision) else { return Ok(events) };
            if !self.store.together.load(Ordering::SeqCst) {
                return Ok(events);
            }
            Ok(events.iter().map(|event| Arc::new(at(last, event))).collect())
        })
    }

    fn delivered(&mut self) -> Revision {
        self.watch.delivered()
    }
}
