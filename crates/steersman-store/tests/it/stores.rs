//! The stores that the suite runs on, each with the ground that it stands on.
//!
//! A [`Ground`] makes stores that know nothing of each other. What a store needs (a directory, a
//! process) lives as long as the last handle to it.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use steersman_store::Store;
use steersman_store::disk::{self, DiskStore};
use steersman_store::etcd::{self, EtcdStore};
use steersman_store::memory::MemoryStore;
use tokio::sync::OnceCell;

use crate::directory::Directory;
use crate::etcd_process::Etcd;

/// What stores stand on.
pub(crate) enum Ground {
    /// Nothing.
    Memory,
    /// A directory for each store.
    Disk,
    /// An etcd, in which each store has a root of its own. All of them see its revisions and its
    /// compactions.
    SharedEtcd(&'static Etcd),
    /// The same, for one test alone.
    OwnEtcd(Arc<Etcd>),
}

/// A store to be tested.
#[derive(Clone)]
pub(crate) struct StoreUnderTest {
    // Dropped before what it stands on.
    store: Arc<dyn Store>,
    /// Whether nobody else's writes move its revision.
    pub(crate) alone: bool,
    _ground: Arc<dyn Any + Send + Sync>,
}

impl StoreUnderTest {
    /// A store that nobody else writes to.
    pub(crate) fn alone(store: impl Store, ground: impl Any + Send + Sync) -> Self {
        Self { store: Arc::new(store), alone: true, _ground: Arc::new(ground) }
    }
}

impl Deref for StoreUnderTest {
    type Target = Arc<dyn Store>;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

impl Ground {
    /// One etcd for all who do not mind each other.
    pub(crate) async fn of_shared_etcd() -> Self {
        static SHARED: OnceCell<Etcd> = OnceCell::const_new();
        Self::SharedEtcd(SHARED.get_or_init(Etcd::start).await)
    }

    /// An etcd that nobody else writes to, or compacts.
    pub(crate) async fn of_own_etcd() -> Self {
        Self::OwnEtcd(Arc::new(Etcd::start().await))
    }

    /// How many random histories are worth their time.
    pub(crate) fn cases(&self) -> u32 {
        match self {
            Self::Memory => 256,
            Self::Disk => 64,
            Self::SharedEtcd(_) | Self::OwnEtcd(_) => 16,
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
            Self::SharedEtcd(etcd) => {
                let store = on_etcd(etcd.endpoints(), &new_root()).await;
                StoreUnderTest { alone: false, ..StoreUnderTest::alone(store, ()) }
            }
            Self::OwnEtcd(etcd) => {
                let store = on_etcd(etcd.endpoints(), &new_root()).await;
                StoreUnderTest::alone(store, Arc::clone(etcd))
            }
        }
    }
}

/// Segments and snapshots so small that there are many.
pub(crate) fn small_files() -> disk::Options {
    let sizes = (16 * 1024, 32 * 1024);
    disk::Options { segment_bytes: sizes.0, snapshot_bytes: sizes.1, ..disk::Options::default() }
}

/// A place in etcd that nobody has used.
pub(crate) fn new_root() -> String {
    static ROOTS: AtomicU32 = AtomicU32::new(0);
    format!("/root-{:05}", ROOTS.fetch_add(1, Ordering::Relaxed))
}

/// The store under a root of the etcd with these members.
pub(crate) async fn on_etcd(endpoints: Vec<String>, root: &str) -> EtcdStore {
    let mut options = etcd::Options::new(endpoints);
    options.compaction = None;
    (options.root, options.prefix) = (root.to_owned(), String::new());
    EtcdStore::connect(options).await.unwrap()
}
