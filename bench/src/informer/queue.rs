//! The work queue on its own: eight producers, eight workers, many keys.
//!
//! Three runs, each ended when the workers are done with everything. In `Cycle` a key is added
//! only when it is not under way, so that every operation is an add, a get and a done. In
//! `Flood` the producers add as fast as they can, and most keys wait already. In the last run
//! keys are added with a delay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::wire::figure;

/// How many tasks add keys.
const PRODUCERS: usize = 8;
/// How many tasks take them.
const WORKERS: usize = 8;
/// How many different keys are added.
const KEYS: usize = 10_000;
/// How often a producer lets other tasks run, as goroutines are made to.
const TURN: usize = 64;
/// Over which time the delayed keys become due.
const SPREAD: Duration = Duration::from_secs(1);

/// A work queue of strings.
pub(crate) trait Queue: Clone + Send + Sync + 'static {
    /// A new queue.
    fn start() -> Self;
    /// Adds a key.
    fn add(&self, key: String);
    /// Adds a key later.
    fn add_after(&self, key: String, delay: Duration);
    /// Takes a key.
    fn get(&self) -> impl Future<Output = Option<String>> + Send;
    /// Ends the work on a key.
    fn done(&self, key: String);
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

/// What the producers do when a key is still under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Take another.
    Cycle,
    /// Add it all the same.
    Flood,
}

/// Measures a queue.
pub(crate) async fn measure<Q: Queue>(size: Size) -> Result<(), String> {
    let rate = |took: Duration| size.operations as f64 / took.as_secs_f64();
    figure("queue_ops_per_second", rate(throughput::<Q>(size.operations, Manner::Cycle).await))?;
    figure("queue_flood_per_second", rate(throughput::<Q>(size.operations, Manner::Flood).await))?;
    let took = delayed::<Q>(size.delayed).await;
    figure("queue_delayed_seconds", took.as_secs_f64())
}

/// The time until all keys were added and worked on.
async fn throughput<Q: Queue>(operations: usize, manner: Manner) -> Duration {
    let queue = Q::start();
    let work = Work::start(&queue);
    let start = Instant::now();
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let (queue, under_way) = (queue.clone(), Arc::clone(&work.under_way));
        let own = (0..KEYS).filter(move |number| number % PRODUCERS == producer);
        let keys: Vec<(usize, String)> = own.map(|number| (number, key(number))).collect();
        producers.spawn(async move {
            let mut left = operations / PRODUCERS;
            for (turn, (number, key)) in keys.iter().cycle().enumerate() {
                let idle = !under_way[*number].swap(true, Ordering::Relaxed);
                if idle || manner == Manner::Flood {
                    queue.add(key.clone());
                    left -= 1;
                }
                if left == 0 {
                    return;
                }
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

fn key(number: usize) -> String {
    format!("namespace-{}/pod-{number}", number % 50)
}

/// The number in a key.
fn number(key: &str) -> usize {
    key.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
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
    /// Which of the repeating keys were added and not done yet.
    under_way: Arc<[AtomicBool]>,
    workers: JoinSet<()>,
}

impl Work {
    fn start<Q: Queue>(queue: &Q) -> Self {
        let [taken, done] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let under_way: Arc<[AtomicBool]> = (0..KEYS).map(|_| AtomicBool::new(false)).collect();
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            let (queue, taken, done) = (queue.clone(), Arc::clone(&taken), Arc::clone(&done));
            let under_way = Arc::clone(&under_way);
            workers.spawn(async move {
                while let Some(key) = queue.get().await {
                    taken.fetch_add(1, Ordering::Relaxed);
                    let number = number(&key);
                    queue.done(key);
                    if let Some(flag) = under_way.get(number) {
                        flag.store(false, Ordering::Relaxed);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self { taken, done, under_way, workers }
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
