//! Many who do the same at once, and how long each time took them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use steersman_store::StoreError;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// When a load ends.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    /// When it has lasted so long.
    Time(Duration),
    /// After so many operations.
    Count(usize),
}

/// What came of a load.
pub(crate) struct Load {
    operations: usize,
    elapsed: Duration,
    /// How long each operation took, in nanoseconds, sorted.
    pub(crate) times: Vec<u64>,
}

impl Load {
    /// Operations a second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }
}

/// Lets so many tasks take the next number and operate on it, again and again.
pub(crate) async fn run<O, F>(
    concurrency: usize,
    until: Until,
    operation: O,
) -> Result<Load, String>
where
    O: Fn(usize) -> F + Clone + Send + 'static,
    F: Future<Output = Result<(), StoreError>> + Send + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..concurrency {
        tasks.spawn(one(start, until, Arc::clone(&next), operation.clone()));
    }
    let mut times = Vec::new();
    while let Some(task) = tasks.join_next().await {
        times.extend(task.map_err(|error| error.to_string())??);
    }
    let elapsed = start.elapsed();
    times.sort_unstable();
    Ok(Load { operations: times.len(), elapsed, times })
}

async fn one<O, F>(
    start: Instant,
    until: Until,
    next: Arc<AtomicUsize>,
    operation: O,
) -> Result<Vec<u64>, String>
where
    O: Fn(usize) -> F,
    F: Future<Output = Result<(), StoreError>>,
{
    let mut times = Vec::new();
    loop {
        let begun = Instant::now();
        let number = next.fetch_add(1, Ordering::Relaxed);
        let over = match until {
            Until::Time(max) => begun - start >= max,
            Until::Count(max) => number >= max,
        };
        if over {
            return Ok(times);
        }
        operation(number).await.map_err(|error| error.to_string())?;
        times.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
}
