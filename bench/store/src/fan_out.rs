//! One writer and many watchers of one prefix: how long a write takes to reach the last of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use steersman_bench_report::percentile;
use steersman_store::{Revision, Store, Watch, WatchRequest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::extent::Bench;
use crate::measured::{Measured, System};
use crate::objects;
use crate::systems::Running;

/// A write that does not reach everybody within this has been lost.
const PATIENCE: Duration = Duration::from_secs(30);
const SYSTEMS: [System; 4] = [System::Disk, System::Etcd, System::Memory, System::OnEtcd];
const METRICS: [(usize, [&str; 2]); 3] = [
    (1, ["write to 1 watcher, p50", "write to 1 watcher, p99"]),
    (100, ["write to last of 100, p50", "write to last of 100, p99"]),
    (1000, ["write to last of 1000, p50", "write to last of 1000, p99"]),
];

/// Measures every system.
pub(crate) async fn measure(bench: &Bench, measured: &mut Measured) -> Result<(), String> {
    for system in SYSTEMS.into_iter().filter(|system| bench.measures(*system)) {
        let running = Running::start(system, &bench.place).await?;
        for (watchers, [p50, p99]) in METRICS {
            let times = times(&running.store, watchers, bench.extent.writes_watched).await?;
            measured.note(system, p50, percentile(&times, 0.5));
            measured.note(system, p99, percentile(&times, 0.99));
        }
        running.stop().await;
    }
    Ok(())
}

/// The times from the call to write until the last watcher had the event, sorted.
async fn times(store: &Arc<dyn Store>, watchers: usize, writes: usize) -> Result<Vec<u64>, String> {
    let after = put(store, 0).await?;
    let waiting = Arc::new(AtomicUsize::new(0));
    let (heard_by_all, mut heard) = mpsc::channel(1);
    let mut watching = JoinSet::new();
    for _ in 0..watchers {
        let request = WatchRequest { prefix: objects::PREFIX.to_owned(), after };
        let watch = store.watch(request).await.map_err(|error| error.to_string())?;
        watching.spawn(listen(watch, Arc::clone(&waiting), heard_by_all.clone()));
    }
    let mut times = Vec::with_capacity(writes);
    for number in 0..writes {
        waiting.store(watchers, Ordering::SeqCst);
        let begun = Instant::now();
        let arrival = async { heard.recv().await.ok_or_else(|| "a watch ended".to_owned()) };
        let both = timeout(PATIENCE, async { tokio::try_join!(put(store, number), arrival) });
        let (_, last) = both.await.map_err(|_| "a watcher missed an event")??;
        times.push(u64::try_from((last - begun).as_nanos()).unwrap_or(u64::MAX));
    }
    times.sort_unstable();
    Ok(times)
}

async fn put(store: &Arc<dyn Store>, number: usize) -> Result<Revision, String> {
    let written = store.write(objects::put(number)).await;
    written.map(|written| written.revision).map_err(|error| error.to_string())
}

/// Counts itself off at each event; the last one says when that was.
async fn listen(
    mut watch: Box<dyn Watch>,
    waiting: Arc<AtomicUsize>,
    heard_by_all: mpsc::Sender<Instant>,
) {
    while let Ok(events) = watch.next().await {
        for _ in events {
            let last = waiting.fetch_sub(1, Ordering::SeqCst) == 1;
            if last && heard_by_all.send(Instant::now()).await.is_err() {
                return;
            }
        }
    }
}
