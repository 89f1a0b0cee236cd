//! The work queue on its own: eight producers, eight workers, many keys.
//!
//! Three runs, each ended when the workers are done with everything. In `Cycle` every key is
//! another one, so that every operation is an add, a get and a done. In `Flood` the same keys
//! come again and again, and most wait already. In the last run keys are added with a delay.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::processes::wire::figure;

/// How many tasks add keys.
const PRODUCERS: usize = 8;
/// How many tasks take them.
const WORKERS: usize = 8;
/// How many different keys a flood has.
const KEYS: usize = 10_000;
/// How often a producer lets other tasks run, as goroutines are made to.
const TURN: usize = 1024;
/// Over which time the delayed keys become due.
const SPREAD: Duration = Duration::from_secs(1);

/// What is queued: a string whose copies are shared, as in Go.
pub(crate) type Key = Arc<str>;

/// A work queue of strings.
pub(crate) trait Queue: Clone + Send + Sync + 'static {
    /// A new queue.
    fn start() -> Self;
    /// Adds a key.
    fn add(&self, key: Key);
    /// Adds a key later.
    fn add_after(&self, key: Key, delay: Duration);
    /// Takes a key.
    fn get(&self) -> impl Future<Output = Option<Key>> + Send;
    /// Ends the work on a key.
    fn done(&self, key: Key);
    /// Whether no key waits.
    fn is_empty(&self) -> bool;
    /// Ends the workers.
    fn shut_down(&self);
}

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// How many keys are added at once.
    pub(crate) operations: usize,
    /// How many keys are added with a delay.
    pub(crate) delayed: usize,
}

/// Measures a queue.
pub(crate) async fn measure<Q: Queue>(size: Size) -> Result<(), String> {
    let rate = |took: Duration| size.operations as f64 / took.as_secs_f64();
    figure("queue_ops_per_second", rate(throughput::<Q>(size.operations, size.operations).await))?;
    figure("queue_flood_per_second", rate(throughput::<Q>(size.operations, KEYS).await))?;
    let took = delayed::<Q>(size.delayed).await;
    figure("queue_delayed_seconds", took.as_secs_f64())
}

/// The time until so many adds of so many different keys were worked on.
async fn throughput<Q: Queue>(operations: usize, different: usize) -> Duration {
    let keys: Arc<[Key]> = (0..different).map(key).collect();
    let queue = Q::start();
    let work = Work::start(&queue);
    let start = Instant::now();
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let queue = queue.clone();
        let keys = Arc::clone(&keys);
        producers.spawn(async move {
            for turn in 0..operations / PRODUCERS {
                queue.add(Arc::clone(&keys[(turn * PRODUCERS + producer) % keys.len()]));
                if turn % TURN == 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    while producers.join_next().await.is_some() {}
    work.idle(&queue).await;
    let took = start.elapsed();
    work.stop(&queue).await;
    took
}

fn key(number: usize) -> Key {
    format!("namespace-{}/pod-{number}", number % 50).into()
}

/// The time from the first delayed key until all were worked on.
async fn delayed<Q: Queue>(count: usize) -> Duration {
    let queue = Q::start();
    let work = Work::start(&queue);
    let start = Instant::now();
    for number in 0..count {
        queue.add_after(key(number), SPREAD.mul_f64((number + 1) as f64 / count as f64));
        if number % TURN == 0 {
            tokio::task::yield_now().await;
        }
    }
    while work.done.load(Ordering::Relaxed) < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = start.elapsed();
    work.stop(&queue).await;
    took
}

/// The workers of a queue.
struct Work {
    taken: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
    workers: JoinSet<()>,
}

impl Work {
    fn start<Q: Queue>(queue: &Q) -> Self {
        let [taken, done] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            let queue = queue.clone();
            let taken = Arc::clone(&taken);
            let done = Arc::clone(&done);
            workers.spawn(async move {
                while let Some(key) = queue.get().await {
                    taken.fetch_add(1, Ordering::Relaxed);
                    queue.done(key);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self { taken, done, workers }
    }

    /// Waits until no key waits and none is being worked on.
    async fn idle<Q: Queue>(&self, queue: &Q) {
        let busy = || {
            let done = self.done.load(Ordering::Relaxed);
            !queue.is_empty() || self.taken.load(Ordering::Relaxed) != done
        };
        while busy() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends the workers.
    async fn stop<Q: Queue>(mut self, queue: &Q) {
        queue.shut_down();
        while self.workers.join_next().await.is_some() {}
    }
}
