//! Durable puts: one writer, and many whose writes a store can make durable together.

use std::sync::Arc;
use std::time::Duration;

use steersman_bench_report::percentile;
use steersman_store::Store;

use crate::extent::Bench;
use crate::load::{self, Until};
use crate::measured::{Measured, System};
use crate::objects;
use crate::systems::Running;

const WARM_UP: Duration = Duration::from_millis(200);
const SYSTEMS: [System; 5] =
    [System::Disk, System::Etcd, System::Unsynced, System::Memory, System::OnEtcd];

/// Measures every system in turns.
pub(crate) async fn measure(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    for _ in 0..bench.extent.rounds {
        for system in SYSTEMS.into_iter().filter(|system| bench.measures(*system)) {
            let running = Running::start(system, &bench.place).await?;
            one(bench, &running.store, system, measured).await?;
            running.stop().await;
        }
    }
    Ok(())
}

async fn one(
    bench: &Bench,
    store: &Arc<dyn Store>,
    system: System,
    measured: &mut Measured,
) -> Result<(), String> {
    const METRICS: [(usize, [&str; 3]); 2] = [
        (1, ["put, 1 writer", "put, 1 writer, p50", "put, 1 writer, p99"]),
        (64, ["put, 64 writers", "put, 64 writers, p50", "put, 64 writers, p99"]),
    ];
    for (writers, [rate, p50, p99]) in METRICS {
        write(store, bench.extent.keys, writers, Until::Time(WARM_UP)).await?;
        let lasting = Until::Time(bench.extent.lasting);
        let load = write(store, bench.extent.keys, writers, lasting).await?;
        measured.note(system, rate, load.rate());
        measured.note(system, p50, percentile(&load.times, 0.5));
        measured.note(system, p99, percentile(&load.times, 0.99));
    }
    Ok(())
}

/// Puts to so many keys in turns.
pub(crate) async fn write(
    store: &Arc<dyn Store>,
    keys: usize,
    writers: usize,
    until: Until,
) -> Result<load::Load, String> {
    let store = Arc::clone(store);
    let put = move |number: usize| {
        let store = Arc::clone(&store);
        async move { store.write(objects::put(number % keys)).await.map(drop) }
    };
    load::run(writers, until, put).await
}
