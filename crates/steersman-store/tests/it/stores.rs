//! The stores that the suite runs on, each with the ground that it stands on.
//!
//! A [`Ground`] makes stores that know nothing of each other. What a store needs (a directory, a
//! process) lives as long as the last handle to it.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use steersman_store::disk::{self, DiskStore};
use steersman_store::encryption::{EncryptedStore, Encryption, Provider, Rule};
use steersman_store::etcd::{self, EtcdStore};
use steersman_store::memory::MemoryStore;
use steersman_store::{Expected, RangeRequest, Revision, Store, WriteRequest};
use tokio::sync::OnceCell;

use crate::directory::Directory;
use crate::etcd_process::Etcd;

/// What stores stand on.
pub(crate) enum Ground {
    /// Nothing.
    Memory,
    /// Nothing, and every value is encrypted.
    Encrypted,
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
    // Dropped before the place that it stands on.
    store: Arc<dyn Store>,
    /// Whether nobody else's writes move its revision.
    pub(crate) alone: bool,
    place: Place,
}

impl StoreUnderTest {
    /// Whether each reader gets a copy of a value.
    pub(crate) fn copies(&self) -> bool {
        matches!(self.place, Place::Encrypted(_))
    }
}

/// Where a store keeps what it holds.
#[derive(Clone)]
enum Place {
    Memory(MemoryStore),
    Encrypted(MemoryStore),
    Disk(DiskStore, Arc<Directory>),
    Etcd { endpoints: Vec<String>, root: String, _process: Option<Arc<Etcd>> },
}

impl Place {
    async fn open_directory(directory: Arc<Directory>) -> Self {
        let (store, _) = DiskStore::open(&directory, small_files()).await.unwrap();
        Self::Disk(store, directory)
    }

    /// The store that holds what is there.
    async fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => Arc::new(store.clone()),
            Self::Encrypted(store) => Arc::new(encrypted(Arc::new(store.clone()), &["key"])),
            Self::Disk(store, _) => Arc::new(store.clone()),
            Self::Etcd { endpoints, root, .. } => Arc::new(on_etcd(endpoints.clone(), root).await),
        }
    }
}

impl StoreUnderTest {
    async fn at(place: Place, alone: bool) -> Self {
        Self { store: place.store().await, alone, place }
    }

    /// The same store after its process ended and another began: opened or connected again, or in
    /// memory, where nothing outlives a process, forked.
    pub(crate) async fn again(self) -> Self {
        let Self { store, alone, place } = self;
        drop(store);
        let place = match place {
            Place::Memory(store) => Place::Memory(store.fork()),
            Place::Encrypted(store) => Place::Encrypted(store.fork()),
            Place::Disk(store, directory) => {
                store.close().await;
                Place::open_directory(directory).await
            }
            Place::Etcd { .. } => place,
        };
        Self::at(place, alone).await
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
            Self::Encrypted => 64,
            Self::Disk => 64,
            Self::SharedEtcd(_) | Self::OwnEtcd(_) => 16,
        }
    }

    /// An empty store.
    pub(crate) async fn store(&self) -> StoreUnderTest {
        let in_etcd = |etcd: &Etcd, process| {
            let (endpoints, root) = (etcd.endpoints(), new_root());
            Place::Etcd { endpoints, root, _process: process }
        };
        let place = match self {
            Self::Memory => Place::Memory(MemoryStore::new()),
            Self::Encrypted => Place::Encrypted(MemoryStore::new()),
            Self::Disk => Place::open_directory(Arc::new(Directory::new())).await,
            Self::SharedEtcd(etcd) => in_etcd(etcd, None),
            Self::OwnEtcd(etcd) => in_etcd(etcd, Some(Arc::clone(etcd))),
        };
        StoreUnderTest::at(place, !matches!(self, Self::SharedEtcd(_))).await
    }
}

/// The store over another one that encrypts every value: with the first of these keys, and it knows
/// the others.
pub(crate) fn encrypted(inner: Arc<dyn Store>, names: &[&str]) -> EncryptedStore {
    // The secret follows from the name.
    let secret = |name: &str| {
        let mut secret = [0; 32];
        secret.iter_mut().zip(name.bytes().cycle()).for_each(|(byte, letter)| *byte = letter);
        secret
    };
    let provider = |name: &&str| Provider::aes_gcm(name, &secret(name)).unwrap();
    let providers = names.iter().map(provider).collect();
    EncryptedStore::new(inner, Encryption::new([Rule { prefixes: vec![String::new()], providers }]))
}

/// Compacts a store on disk, and writes to one of its keys until a snapshot of that is there.
pub(crate) async fn compact_to_snapshot(store: &dyn Store, directory: &Directory, to: Revision) {
    store.compact(to).await.unwrap();
    let snapshot = directory.join(format!("{:020}.snapshot", to.0));
    let all = store.range(RangeRequest { limit: 1, ..RangeRequest::default() }).await.unwrap();
    let [first] = &all.entries[..] else { panic!("it is empty") };
    while !snapshot.exists() {
        let request = WriteRequest::put(&*first.key, first.value.clone(), Expected::Any);
        store.write(request).await.unwrap();
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
