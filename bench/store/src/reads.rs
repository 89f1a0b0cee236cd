//! Gets and ranges of a store that holds every key.

use std::sync::Arc;

use steersman_bench_report::percentile;
use steersman_store::{RangeRequest, Store, StoreError};
use tokio::time::Instant;

use crate::extent::Bench;
use crate::load::{self, Until};
use crate::measured::{Measured, System};
use crate::objects;

/// Gets between two looks at the clock, which would otherwise take a good part of the time.
const GETS: usize = 16;
const PAGE: usize = 500;

/// Gets, for one reader and for many.
pub(crate) async fn gets(
    bench: &Bench,
    store: &Arc<dyn Store>,
    system: System,
    measured: &mut Measured,
) -> Result<(), String> {
    let keys: Arc<Vec<String>> = Arc::new((0..bench.extent.keys).map(objects::key).collect());
    for (readers, metric) in [(1, "get, 1 reader"), (64, "get, 64 readers")] {
        let store = Arc::clone(store);
        let keys = Arc::clone(&keys);
        let get = move |number: usize| get_some(Arc::clone(&store), Arc::clone(&keys), number);
        let load = load::run(readers, Until::Time(bench.extent.lasting), get).await?;
        measured.note(system, metric, load.rate() * GETS as f64);
    }
    Ok(())
}

async fn get_some(
    store: Arc<dyn Store>,
    keys: Arc<Vec<String>>,
    number: usize,
) -> Result<(), StoreError> {
    /// Far from a neighbour, and coprime to the number of keys.
    const STRIDE: usize = 7919;
    for get in 0..GETS {
        let key = &keys[(number * GETS + get) * STRIDE % keys.len()];
        if store.get(key).await?.is_none() {
            return Err(missing(key));
        }
    }
    // A store that answers at once would let one reader run alone.
    tokio::task::yield_now().await;
    Ok(())
}

/// Ranges over all keys, in one piece and in pages.
pub(crate) async fn ranges(
    bench: &Bench,
    store: &Arc<dyn Store>,
    system: System,
    measured: &mut Measured,
) -> Result<(), String> {
    const METRICS: [(usize, [&str; 2]); 2] = [
        (0, ["range of all keys", "range of all keys, entries"]),
        (PAGE, ["range in pages of 500", "range in pages, entries"]),
    ];
    for (limit, [time, rate]) in METRICS {
        let mut times = Vec::new();
        for _ in 0..bench.extent.ranges {
            let begun = Instant::now();
            let entries = range(store, limit).await.map_err(|error| error.to_string())?;
            times.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            if entries != bench.extent.keys {
                return Err(format!("a range of {entries} entries"));
            }
        }
        times.sort_unstable();
        let milliseconds = percentile(&times, 0.5);
        measured.note(system, time, milliseconds);
        measured.note(system, rate, bench.extent.keys as f64 / milliseconds * 1000.0);
    }
    Ok(())
}

/// Reads all entries at one revision, so many at a time, and counts them.
async fn range(store: &Arc<dyn Store>, limit: usize) -> Result<usize, StoreError> {
    let mut request =
        RangeRequest { prefix: objects::PREFIX.to_owned(), limit, ..RangeRequest::default() };
    let mut entries = 0;
    loop {
        let page = store.range(request.clone()).await?;
        entries += page.entries.len();
        let last = page.entries.last().filter(|_| page.more);
        let Some(last) = last else { return Ok(entries) };
        request.start = Some(format!("{}\0", last.key));
        request.at = Some(page.revision);
    }
}

fn missing(key: &str) -> StoreError {
    StoreError::Failed { reason: format!("{key} is missing") }
}
