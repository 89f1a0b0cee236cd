//! The systems under test, each started afresh on a directory of its own.

use std::path::Path;
use std::sync::Arc;

use steersman_store::Store;
use steersman_store::disk::{DiskStore, Opened, Options};
use steersman_store::etcd::{self as etcd_store, EtcdStore};
use steersman_store::memory::MemoryStore;

use crate::etcd;
use crate::measured::System;
use crate::place::{Directory, Place};

/// A running system; what it left on disk goes with it.
pub(crate) struct Running {
    pub(crate) store: Arc<dyn Store>,
    disk: Option<DiskStore>,
    etcd: Option<etcd::Process>,
    _directory: Directory,
}

impl Running {
    /// Starts a system with nothing in it.
    pub(crate) async fn start(system: System, place: &Place) -> Result<Self, String> {
        let directory = place.empty("fresh")?;
        let path = directory.path();
        let mut disk = None;
        let mut etcd = None;
        let store: Arc<dyn Store> = match system {
            System::Memory => Arc::new(MemoryStore::new()),
            System::Disk | System::Unsynced => {
                let options = Options { sync: system == System::Disk, ..Options::default() };
                let (store, _) = open(path, options).await?;
                Arc::new(disk.insert(store).clone())
            }
            System::Etcd => {
                Arc::new(etcd.insert(etcd::Process::start(path).await?).client().await?)
            }
            System::OnEtcd => {
                Arc::new(on_etcd(etcd.insert(etcd::Process::start(path).await?)).await?)
            }
            System::EtcdStale => {
                Arc::new(etcd.insert(etcd::Process::start(path).await?).stale_client().await?)
            }
        };
        Ok(Self { store, disk, etcd, _directory: directory })
    }

    /// Ends it before the next one starts, so that neither disturbs the other.
    pub(crate) async fn stop(self) {
        if let Some(disk) = self.disk {
            disk.close().await;
        }
        drop(self.etcd);
    }
}

/// Opens our store on disk.
pub(crate) async fn open(path: &Path, options: Options) -> Result<(DiskStore, Opened), String> {
    DiskStore::open(path, options).await.map_err(|error| error.to_string())
}

/// Connects our store to an etcd. Nobody compacts while it is measured.
pub(crate) async fn on_etcd(process: &etcd::Process) -> Result<EtcdStore, String> {
    let mut options = etcd_store::Options::new([process.endpoint()]);
    options.compaction = None;
    EtcdStore::connect(options).await.map_err(|error| error.to_string())
}
