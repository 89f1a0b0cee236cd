//! Where a cluster keeps what it holds: the choice, and the store that comes of it.
//!
//! Everything above sees a [`Store`] and does not know which; only how a cluster starts and stops
//! depends on it.

use futures::future::BoxFuture;
use steersman_store::memory::{MemoryStore, Stats};
use steersman_store::{
    Entry, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};

use crate::StartError;

/// Where a cluster keeps what it holds.
#[derive(Clone, Debug, Default)]
pub enum Storage {
    /// In memory, gone when the cluster stops.
    #[default]
    Memory,
    /// In a store that exists, with what is in it: a [fork](MemoryStore::fork) of one that was
    /// prepared, or one that several servers share.
    Existing(MemoryStore),
}

impl Storage {
    /// Opens the store.
    pub(crate) async fn open(self) -> Result<OpenStore, StartError> {
        match self {
            Self::Memory => Ok(OpenStore::Memory(MemoryStore::new())),
            Self::Existing(store) => Ok(OpenStore::Memory(store)),
        }
    }
}

/// The store of a running cluster. Clones are handles to the same store.
#[derive(Clone, Debug)]
pub enum OpenStore {
    /// In memory.
    Memory(MemoryStore),
}

impl OpenStore {
    /// How large the store is now, as far as this process holds it in memory.
    pub fn stats(&self) -> Stats {
        match self {
            Self::Memory(store) => store.stats(),
        }
    }

    /// The store in memory, if it is one: it can be [forked](MemoryStore::fork).
    pub fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(store) => Some(store),
        }
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
        }
    }

    fn inner(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => store,
        }
    }
}

impl Store for OpenStore {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        self.inner().get(key)
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
}
