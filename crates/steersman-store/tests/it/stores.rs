//! The stores that the suite runs on, each with the ground that it stands on.
//!
//! A [`Ground`] makes stores that know nothing of each other. What a store needs (a directory, a
//! process) lives as long as the last handle to it.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use steersman_store::Store;
use steersman_store::disk::{DiskStore, Options};
use steersman_store::memory::MemoryStore;

use crate::directory::Directory;

/// What stores stand on.
pub(crate) enum Ground {
    /// Nothing.
    Memory,
    /// A directory for each store.
    Disk,
}

/// A store to be tested.
#[derive(Clone)]
pub(crate) struct StoreUnderTest {
    // Dropped before what it stands on.
    store: Arc<dyn Store>,
    /// Whether nobody else's writes move its revision.
    pub(crate) alone: bool,
    /// The shortest time to live that the store does not lengthen.
    pub(crate) ttl_min: Duration,
    _ground: Arc<dyn Any + Send + Sync>,
}

impl StoreUnderTest {
    /// A store that nobody else writes to.
    pub(crate) fn alone(store: impl Store, ground: impl Any + Send + Sync) -> Self {
        let ttl_min = Duration::from_secs(1);
        Self { store: Arc::new(store), alone: true, ttl_min, _ground: Arc::new(ground) }
    }
}

impl Deref for StoreUnderTest {
    type Target = Arc<dyn Store>;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

impl Ground {
    /// How many random histories are worth their time.
    pub(crate) fn cases(&self) -> u32 {
        match self {
            Self::Memory => 256,
            Self::Disk => 64,
        }
    }

    /// An empty store.
    pub(crate) async fn store(&self) -> StoreUnderTest {
        match self {
            Self::Memory => StoreUnderTest::alone(MemoryStore::new(), ()),
            Self::Disk => {
                let directory = Directory::new();
                let (store, _) = DiskStore::open(&directory, small_files()).await.unwrap();
                StoreUnderTest::alone(store, directory)
            }
        }
    }
}

/// Segments and snapshots so small that there are many.
pub(crate) fn small_files() -> Options {
    Options { segment_bytes: 16 * 1024, snapshot_bytes: 32 * 1024, ..Options::default() }
}
