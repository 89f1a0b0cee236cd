//! How long a worker goes on before other tasks get their turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::Instant;

use crate::workqueue::WorkQueue;
use crate::workqueue::turns::Backlog;

/// Enough to hurry.
const MANY: usize = 20_000;

/// Not enough.
const FEW: usize = 10_000;

fn queue_of(keys: usize) -> WorkQueue<usize> {
    let queue = WorkQueue::default();
    (0..keys).for_each(|key| queue.add(key));
    queue
}

/// Takes every key and works on each as told; tells how many it has.
fn worker(queue: &WorkQueue<usize>, work: fn()) -> Arc<AtomicUsize> {
    let taken = Arc::new(AtomicUsize::new(0));
    let queue = queue.clone();
    tokio::spawn({
        let taken = Arc::clone(&taken);
        async move {
            while let Some(key) = queue.get().await {
                taken.fetch_add(1, Relaxed);
                work();
                queue.done(&key);
            }
        }
    });
    taken
}

/// How many keys a worker takes in each turn, until it has them all.
async fn turns(keys: usize, work: fn()) -> Vec<usize> {
    let queue = queue_of(keys);
    let taken = worker(&queue, work);
    let mut turns = Vec::new();
    let mut before = 0;
    while before < keys {
        yield_now().await;
        turns.push(taken.load(Relaxed) - before);
        before = taken.load(Relaxed);
    }
    turns
}

fn nothing() {}

/// Awaits nothing, as a reconcile that finds nothing to do.
fn five_microseconds() {
    let start = Instant::now();
    while start.elapsed() <= Duration::from_micros(5) {}
}

#[tokio::test(start_paused = true)]
async fn a_quick_worker_hurries_while_many_keys_wait_and_leaves_turns_to_others() {
    let turns = turns(MANY, nothing).await;
    assert!(turns.iter().all(|keys| *keys <= 2048), "{turns:?}");
    assert!(turns.iter().rev().skip(1).all(|keys| *keys > 2000), "{turns:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_does_not_hurry_while_few_keys_wait() {
    let turns = turns(FEW, nothing).await;
    assert!(turns.iter().all(|keys| *keys <= 128), "{turns:?}");
}

#[tokio::test]
async fn a_worker_that_is_not_quick_pays_for_each_key() {
    let turns = turns(MANY, five_microseconds).await;
    assert!(turns.iter().all(|keys| *keys <= 128), "{turns:?}");
}

#[tokio::test(start_paused = true)]
async fn turns_do_not_depend_on_what_happened_on_the_thread_before() {
    let first = turns(MANY, nothing).await;
    let odd = queue_of(MANY);
    tokio::spawn(async move {
        for _ in 0..13 {
            odd.get().await;
        }
    });
    yield_now().await;
    assert_eq!(turns(MANY, nothing).await, first);
}

#[test]
fn a_backlog_begins_with_many_keys_and_ends_when_none_waits() {
    let mut backlog = Backlog::default();
    let looks = [FEW, MANY, FEW, 1, 0, FEW].map(|waiting| backlog.look(waiting));
    assert_eq!(looks, [false, true, true, true, false, false]);
}
