//! The store on etcd, 3.4 or later: shared by several processes, and with whatever else is there.
//!
//! etcd decides about writes and keeps them; the index in memory answers reads and watches. In
//! between, the way of a change: `write` (one transaction) → etcd → `feed` (one watch a process)
//! → index → readers, who know through `freshness` what they must wait for, and through
//! `progress` when it is there. `client` knows the cluster's members and what may be asked twice.
//!
//! Keys lie in etcd as Kubernetes lays them out, and a revision is etcd's own.

mod client;
mod compaction;
mod error;
mod feed;
mod freshness;
mod keys;
mod leases;
mod load;
mod members;
mod options;
mod progress;
mod settle;
mod wire;
mod write;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::client::Client;
use self::compaction::Compactor;
use self::error::{Failure, of_read};
use self::feed::Feed;
use self::freshness::Freshness;
use self::keys::{Keys, revision};
use self::leases::Leases;
pub use self::options::{ConnectError, Options};
use self::progress::{Head, Progress, STALL};
use crate::index::Index;
pub use crate::index::Stats;
use crate::room::Room;
use crate::{
    Entry, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};

/// A [`Store`] on etcd. Cloning is cheap and gives another handle; when the last one is dropped,
/// the connections and the tasks end.
#[derive(Clone)]
pub struct EtcdStore {
    core: Arc<Core>,
    _tasks: Arc<Tasks>,
}

/// What all handles share.
struct Core {
    client: Arc<Client>,
    keys: Keys,
    index: Arc<Index>,
    progress: Arc<Progress>,
    freshness: Freshness,
    leases: Leases,
    room: Room,
    request_timeout: Duration,
}

/// Tasks that end with this.
struct Tasks(Vec<AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl EtcdStore {
    /// Reads everything that is there, and follows etcd from then on, in tasks of the runtime
    /// that this is called on.
    pub async fn connect(options: Options) -> Result<Self, ConnectError> {
        let client = Arc::new(Client::new(&options)?);
        let failed = |error| ConnectError::of(&options, error);
        let index = Arc::new(Index::new(options.history_bytes));
        let progress = Arc::new(Progress::new(0, Revision(0)));
        let keys = Keys::new(&options.root, &options.prefix);
        let mut feed = Feed {
            client: Arc::clone(&client),
            index: Arc::clone(&index),
            progress: Arc::clone(&progress),
            keys: keys.clone(),
            history: options.history,
            landmark: None,
            patience: STALL,
        };
        // Fails early, and with the reason, if etcd cannot be reached at all.
        let first = client.head(Instant::now() + options.request_timeout).await;
        first.map_err(|failure| failed(of_read(failure)))?;
        let head = feed.start().await.map_err(|failure| failed(of_read(failure)))?;

        let request_timeout = options.request_timeout;
        let (freshness, asker) =
            Freshness::new(Arc::clone(&client), Arc::clone(&progress), request_timeout);
        let mut tasks = vec![spawn(feed.run()), spawn(asker.run())];
        if let Some(interval) = options.compaction {
            let compactor = Compactor::new(Arc::clone(&client), interval, request_timeout);
            tasks.push(spawn(compactor.run()));
        }
        let leases = Leases::default();
        let room = Room::default();
        let core = Core { client, keys, index, progress, freshness, leases, room, request_timeout };
        let store = Self { core: Arc::new(core), _tasks: Arc::new(Tasks(tasks)) };
        store.core.catch_up(revision(head.revision)).await.map_err(failed)?;
        Ok(store)
    }

    /// How large the store is now.
    pub fn stats(&self) -> Stats {
        self.core.index.stats()
    }
}

fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    tokio::spawn(task).abort_handle()
}

impl Core {
    fn deadline(&self) -> Instant {
        Instant::now() + self.request_timeout
    }

    /// Waits until the index shows every write that was acknowledged before.
    async fn refresh(&self) -> Result<(), StoreError> {
        let deadline = self.deadline();
        loop {
            let head = self.freshness.ask(deadline).await?;
            if self.progress.reach(head, deadline).await? {
                return Ok(());
            }
        }
    }

    /// Waits until the index has a revision, unless etcd itself has not come there yet.
    async fn reach(&self, requested: Revision) -> Result<(), StoreError> {
        if requested <= self.index.revision() {
            return Ok(());
        }
        let deadline = self.deadline();
        loop {
            let mut head = self.progress.position();
            if requested > self.progress.known() {
                head = self.freshness.ask(deadline).await?;
                if requested > head.revision {
                    return Err(StoreError::Future { requested, current: head.revision });
                }
            }
            let head = Head { revision: requested, ..head };
            if self.progress.reach(head, deadline).await? {
                return Ok(());
            }
        }
    }

    /// Waits for a revision as long as there is progress.
    async fn catch_up(&self, to: Revision) -> Result<(), StoreError> {
        loop {
            let before = self.progress.position();
            let head = Head { revision: to, ..before };
            match self.progress.reach(head, self.deadline()).await {
                Ok(_) => return Ok(()),
                Err(_) if self.progress.position() != before => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn fresh_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.refresh().await?;
        Ok(self.index.get(key))
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, StoreError> {
        match request.at {
            // What was there at a revision does not change any more.
            Some(revision) => self.reach(revision).await?,
            None if request.stale => {}
            None => self.refresh().await?,
        }
        self.index.range(&request)
    }

    async fn watch(&self, request: WatchRequest) -> Result<Box<dyn Watch>, StoreError> {
        self.reach(request.after).await?;
        self.index.watch(request)
    }

    async fn compact(&self, to: Revision) -> Result<(), StoreError> {
        self.reach(to).await?;
        match compaction::compact(&self.client, to, self.deadline()).await {
            Ok(()) => self.index.compact(to).await,
            Err(Failure::Future) => {
                Err(StoreError::Future { requested: to, current: self.index.revision() })
            }
            Err(failure) => Err(of_read(failure)),
        }
    }
}

impl Debug for EtcdStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EtcdStore").field(&self.stats()).finish()
    }
}

impl Store for EtcdStore {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        let key = key.to_owned();
        async move { self.core.fresh_get(&key).await }.boxed()
    }

    fn known(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        match at {
            None => future::ready(Ok(self.core.index.get(key))).boxed(),
            Some(revision) => {
                let key = key.to_owned();
                async move {
                    self.core.reach(revision).await?;
                    self.core.index.at(&key, at)
                }
                .boxed()
            }
        }
    }

    fn modified(
        &self,
        key: &str,
        at: Revision,
    ) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        let key = key.to_owned();
        async move {
            self.core.reach(at).await?;
            self.core.index.modified(&key, at)
        }
        .boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        self.core.range(request).boxed()
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        async move {
            let puts = request.value.is_some();
            let written = self.core.write(request).await;
            if puts {
                self.core.room.note(&written);
            }
            written
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        self.core.watch(request).boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.core.compact(revision).boxed()
    }

    fn hold_compactly(&self, folder: &str) {
        self.core.index.hold_compactly(folder);
    }

    fn health(&self) -> Result<(), StoreError> {
        self.core.room.check()
    }
}
