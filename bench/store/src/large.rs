//! Stores that hold many keys, each written several times: reading from them, what they take on
//! disk, and how soon they are there again after a crash.

use std::path::Path;
use std::sync::Arc;

use steersman_store::Store;
use steersman_store::disk::{DiskStore, Options};
use steersman_store::memory::MemoryStore;
use tokio::time::Instant;

use crate::extent::Bench;
use crate::load::Until;
use crate::measured::{Measured, System};
use crate::systems::{on_etcd, open};
use crate::{etcd, objects, puts, reads};

const WRITERS: usize = 256;

/// Measures every system.
pub(crate) async fn measure(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    if bench.measures(System::Disk) {
        disk(bench, measured).await?;
    }
    if bench.measures(System::Memory) {
        memory(bench, measured).await?;
    }
    if bench.measures(System::Etcd) {
        etcd(bench, measured).await?;
    }
    Ok(())
}

async fn disk(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    let system = System::Disk;
    let directory = bench.place.empty("large")?;
    let (disk, _) = open(directory.path(), Options::default()).await?;
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    fill(bench, &store, system, measured).await?;
    read(bench, &store, system, measured).await?;
    drop(store);
    disk.close().await;

    measured.note(system, "on disk after the fill", directory.megabytes()?);
    let (disk, seconds) = reopen_disk(directory.path()).await?;
    measured.note(system, "open after the fill", seconds);
    compact(&disk).await?;
    measured.note(system, "on disk after compaction", directory.settled_megabytes().await?);
    disk.close().await;
    let (disk, seconds) = reopen_disk(directory.path()).await?;
    measured.note(system, "open after compaction", seconds);
    disk.close().await;
    Ok(())
}

/// Opens the store and reads from it; gives the time that both took, in seconds.
async fn reopen_disk(directory: &Path) -> Result<(DiskStore, f64), String> {
    let begun = Instant::now();
    let (disk, opened) = open(directory, Options::default()).await?;
    disk.get(&objects::key(0)).await.map_err(|error| error.to_string())?;
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("store: {opened}");
    Ok((disk, seconds))
}

async fn memory(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    fill(bench, &store, System::Memory, measured).await?;
    read(bench, &store, System::Memory, measured).await
}

async fn etcd(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    let system = System::Etcd;
    let directory = bench.place.empty("large")?;
    let mut process = etcd::Process::start(directory.path()).await?;
    let client: Arc<dyn Store> = Arc::new(process.client().await?);
    fill(bench, &client, system, measured).await?;
    read(bench, &client, system, measured).await?;
    let stale: Arc<dyn Store> = Arc::new(process.stale_client().await?);
    read(bench, &stale, System::EtcdStale, measured).await?;
    let begun = Instant::now();
    let ours: Arc<dyn Store> = Arc::new(on_etcd(&process).await?);
    measured.note(System::OnEtcd, "open after the fill", begun.elapsed().as_secs_f64());
    read(bench, &ours, System::OnEtcd, measured).await?;
    drop(ours);

    measured.note(system, "on disk after the fill", directory.megabytes()?);
    measured.note(system, "open after the fill", reopen_etcd(&mut process).await?);
    let client = process.client().await?;
    compact(&client).await?;
    measured.note(system, "on disk after compaction", directory.settled_megabytes().await?);
    measured.note(system, "open after compaction", reopen_etcd(&mut process).await?);
    let client = process.client().await?;
    client.defragment().await.map_err(|error| error.to_string())?;
    measured.note(system, "on disk, defragmented", directory.megabytes()?);
    Ok(())
}

async fn reopen_etcd(process: &mut etcd::Process) -> Result<f64, String> {
    let begun = Instant::now();
    process.crash_and_start().await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Writes every key several times.
async fn fill(
    bench: &Bench,
    store: &Arc<dyn Store>,
    system: System,
    measured: &mut Measured,
) -> Result<(), String> {
    let writes = Until::Count(bench.extent.keys * bench.extent.writes_per_key);
    let load = puts::write(store, bench.extent.keys, WRITERS, writes).await?;
    measured.note(system, "fill, 256 writers", load.rate());
    Ok(())
}

async fn read(
    bench: &Bench,
    store: &Arc<dyn Store>,
    system: System,
    measured: &mut Measured,
) -> Result<(), String> {
    reads::gets(bench, store, system, measured).await?;
    reads::ranges(bench, store, system, measured).await
}

/// Forgets all history.
async fn compact(store: &dyn Store) -> Result<(), String> {
    let written = store.write(objects::put(0)).await.map_err(|error| error.to_string())?;
    store.compact(written.revision).await.map_err(|error| error.to_string())
}
