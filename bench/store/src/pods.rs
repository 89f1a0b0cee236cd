//! The memory that a store takes to hold 150,000 Pods of three kilobytes, in a process that does
//! nothing else.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use steersman_store::Store;
use steersman_store::disk::Options;

use crate::extent::Bench;
use crate::load::{self, Until};
use crate::measured::{Measured, System};
use crate::systems::open;
use crate::{etcd, objects, process_memory};

const WRITERS: usize = 256;

/// Measures our store on disk, and etcd.
pub(crate) async fn measure(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    if bench.measures(System::Disk) {
        disk(bench, measured)?;
    }
    if bench.measures(System::Etcd) {
        etcd(bench, measured).await?;
    }
    Ok(())
}

fn disk(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    let directory = bench.place.empty("pods")?;
    let path = directory.path().display().to_string();
    let pods = bench.extent.pods.to_string();
    measured.note(System::Disk, "resident, holding Pods", ask_child(&["fill", &path, &pods])?);
    measured.note(System::Disk, "resident, opened again", ask_child(&["fill", &path, "0"])?);
    Ok(())
}

async fn etcd(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    let directory = bench.place.empty("pods")?;
    let mut process = etcd::Process::start(directory.path()).await?;
    let client: Arc<dyn Store> = Arc::new(process.client().await?);
    fill(&client, bench.extent.pods).await?;
    measured.note(System::Etcd, "resident, holding Pods", process.resident()?);
    process.crash_and_start().await?;
    measured.note(System::Etcd, "resident, opened again", process.resident()?);
    Ok(())
}

/// Lets another process of this program hold the Pods, and tell its memory.
fn ask_child(arguments: &[&str]) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program);
    // As `steersman` sets it for itself.
    child.args(arguments).env("MIMALLOC_PURGE_DELAY", "0");
    let output = child.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What the child does: opens a store, writes so many Pods, and gives its memory in megabytes.
pub(crate) async fn hold(directory: &Path, pods: usize) -> Result<f64, String> {
    let (disk, _) = open(directory, Options::default()).await?;
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    fill(&store, pods).await?;
    let resident = process_memory::resident("self")?;
    disk.close().await;
    Ok(resident)
}

async fn fill(store: &Arc<dyn Store>, pods: usize) -> Result<(), String> {
    let store = Arc::clone(store);
    let put = move |number: usize| {
        let store = Arc::clone(&store);
        async move { store.write(objects::put_pod(number)).await.map(drop) }
    };
    load::run(WRITERS, Until::Count(pods), put).await.map(drop)
}
