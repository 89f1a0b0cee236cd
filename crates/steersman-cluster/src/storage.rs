//! Where a cluster keeps what it holds: the choice, and the store that comes of it.
//!
//! Everything above sees a [`Store`] and does not know which; only how a cluster starts and stops
//! depends on it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use steersman_apiserver::encryption;
use steersman_store::disk::{self, DiskStore};
use steersman_store::encryption::{EncryptedStore, Encryption};
use steersman_store::etcd::{self, EtcdStore};
use steersman_store::memory::{MemoryStore, Stats};
use steersman_store::{
    Entry, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};

use crate::error::StartError;

/// Where a cluster keeps what it holds.
#[derive(Clone, Debug, Default)]
pub enum Storage {
    /// In memory, gone when the cluster stops.
    #[default]
    Memory,
    /// In a store that exists, with what is in it: a [fork](MemoryStore::fork) of one that was
    /// prepared, or one that several servers share.
    Existing(MemoryStore),
    /// In a directory that one process at a time can use. What was acknowledged survives the end
    /// of the process, and with `sync` the end of the machine.
    Disk {
        /// The directory, which is made if it is not there.
        directory: PathBuf,
        /// Whether a write is on disk before it is acknowledged.
        sync: bool,
    },
    /// In etcd, which several servers can share: one of them is elected to run controllers,
    /// scheduler and nodes.
    Etcd(Box<etcd::Options>),
}

impl Storage {
    /// Opens the store, which keeps at most so many bytes of the past in memory, and tells what was
    /// found if it is on disk.
    pub(crate) async fn open(
        self,
        history_bytes: u64,
    ) -> Result<(OpenStore, Option<disk::Opened>), StartError> {
        match self {
            Self::Memory => Ok((OpenStore::Memory(MemoryStore::with_history(history_bytes)), None)),
            Self::Existing(store) => Ok((OpenStore::Memory(store), None)),
            Self::Disk { directory, sync } => {
                let options = disk::Options { sync, history_bytes, ..disk::Options::default() };
                let (store, opened) = DiskStore::open(&directory, options).await?;
                Ok((OpenStore::Disk(store), Some(opened)))
            }
            Self::Etcd(options) => {
                let options = etcd::Options { history_bytes, ..*options };
                Ok((OpenStore::Etcd(EtcdStore::connect(options).await?), None))
            }
        }
    }
}

/// The store of a running cluster. Clones are handles to the same store.
#[derive(Clone)]
pub enum OpenStore {
    /// In memory.
    Memory(MemoryStore),
    /// In a directory.
    Disk(DiskStore),
    /// In etcd.
    Etcd(EtcdStore),
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.name()).field(&self.stats()).finish()
    }
}

impl OpenStore {
    /// How large the store is now, as far as this process holds it in memory.
    pub fn stats(&self) -> Stats {
        match self {
            Self::Memory(store) => store.stats(),
            Self::Disk(store) => store.stats(),
            Self::Etcd(store) => store.stats(),
        }
    }

    /// The store in memory, if it is one: it can be [forked](MemoryStore::fork).
    pub fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(store) => Some(store),
            Self::Disk(_) | Self::Etcd(_) => None,
        }
    }

    /// The store as the API server sees it: what is encrypted is so nowhere but beneath it. In
    /// memory nothing is.
    pub(crate) async fn decrypted(
        &self,
        encryption: Option<Encryption>,
    ) -> Result<Arc<dyn Store>, StoreError> {
        let store: Arc<dyn Store> = Arc::new(self.clone());
        let encryption = match (self, encryption) {
            (Self::Memory(_), _) => return Ok(store),
            // Nobody else writes there, and if nothing is encrypted nothing will be.
            (Self::Disk(_), None) if !encryption::is_any(&*store).await? => return Ok(store),
            (_, encryption) => encryption.unwrap_or_default(),
        };
        let store = Arc::new(EncryptedStore::new(store, encryption));
        encryption::renew(&*store).await?;
        Ok(store)
    }

    /// Whether other processes may use it at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Etcd(_))
    }

    /// Ends it: what was written is safe, and a directory is free again.
    pub(crate) async fn close(self) {
        if let Self::Disk(store) = self {
            store.close().await;
        }
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Disk(_) => "disk",
            Self::Etcd(_) => "etcd",
        }
    }

    fn inner(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => store,
            Self::Disk(store) => store,
            Self::Etcd(store) => store,
        }
    }
}

impl Store for OpenStore {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        self.inner().get(key)
    }

    fn known(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        self.inner().known(key, at)
    }

    fn modified(
        &self,
        key: &str,
        at: Revision,
    ) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        self.inner().modified(key, at)
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        self.inner().range(request)
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        self.inner().write(request)
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        self.inner().watch(request)
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner().compact(revision)
    }

    fn hold_compactly(&self, folder: &str) {
        self.inner().hold_compactly(folder);
    }

    fn health(&self) -> Result<(), StoreError> {
        self.inner().health()
    }
}
