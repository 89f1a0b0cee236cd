//! What went wrong in other queues (controller-frameworks, "Queues and loops"), each as a test.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures::FutureExt;
use tokio::time::{Instant, advance};

use crate::workqueue::{
    AddOptions, ExponentialBackoff, LONGEST_DELAY, Priority, RateLimiter, WorkQueue,
};

const SECOND: Duration = Duration::from_secs(1);

/// 11: kubernetes/kubernetes#132805.
#[tokio::test(start_paused = true)]
async fn triggers_that_did_not_wait_for_the_back_off_do_not_lengthen_it() {
    let queue = WorkQueue::new(ExponentialBackoff::new(SECOND, 1000 * SECOND));
    queue.add("a");
    for _ in 0..50 {
        let key = queue.get().await.unwrap();
        queue.add_rate_limited(key); // it fails
        queue.done(&key);
        queue.add(key); // and something else asks for it at once
    }
    assert_eq!(queue.num_requeues(&"a"), 1);
    let key = queue.get().await.unwrap();
    queue.add_rate_limited(key);
    queue.done(&key);
    let start = Instant::now();
    queue.get().await.unwrap();
    assert!(start.elapsed() < 2 * SECOND, "{:?}", start.elapsed());
}

/// 12: success ends the back-off, and so does asking to come again later.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_forgotten_and_comes_later_starts_over() {
    let queue = WorkQueue::new(ExponentialBackoff::new(SECOND, 1000 * SECOND));
    queue.add("a");
    for _ in 0..5 {
        let key = queue.get().await.unwrap();
        queue.add_rate_limited(key);
        queue.done(&key);
    }
    let key = queue.get().await.unwrap();
    queue.forget(&key);
    queue.add_after(key, 60 * SECOND);
    queue.done(&key);
    let start = Instant::now();
    let key = queue.get().await.unwrap();
    assert_eq!((start.elapsed(), queue.num_requeues(&key)), (60 * SECOND, 0));
    queue.add_rate_limited(key);
    queue.done(&key);
    queue.get().await.unwrap();
    assert!(start.elapsed() < 62 * SECOND, "the first failure again");
}

/// 12: an error and a later visit for one key are one visit, at the earlier time.
#[tokio::test(start_paused = true)]
async fn a_failure_and_a_later_visit_give_one_visit_at_the_earlier_time() {
    let queue = WorkQueue::new(ExponentialBackoff::new(SECOND, SECOND));
    queue.add_after("a", 60 * SECOND);
    queue.add_rate_limited("a");
    let start = Instant::now();
    let key = queue.get().await.unwrap();
    assert!(start.elapsed() < 2 * SECOND);
    queue.done(&key);
    assert!(tokio::time::timeout(3600 * SECOND, queue.get()).await.is_err());
}

/// Looks into the queue when it is woken.
struct Curious(WorkQueue<u32>);

impl Wake for Curious {
    fn wake(self: Arc<Self>) {
        assert!(self.0.len() < 10);
    }
}

/// 13: controller-runtime#3538 handed keys over under the lock. (Races at shutdown are in
/// `interleavings`.)
#[tokio::test(start_paused = true)]
async fn workers_are_woken_without_the_lock() {
    let queue = WorkQueue::default();
    let waker = Waker::from(Arc::new(Curious(queue.clone())));
    let mut get = Box::pin(queue.get());
    assert!(get.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    queue.add(1); // would never return
    drop(get);
    let mut get = Box::pin(queue.get());
    let _ = get.poll_unpin(&mut Context::from_waker(&waker));
    queue.shut_down();
}

/// Looks into the queue when it is asked.
#[derive(Default)]
struct Nosy(Arc<OnceLock<WorkQueue<u32>>>);

impl RateLimiter<u32> for Nosy {
    fn failed(&self, key: &u32) -> Duration {
        self.forget(key);
        SECOND
    }

    fn forget(&self, _: &u32) {
        self.0.get().unwrap().len();
    }

    fn failures(&self, key: &u32) -> u32 {
        self.forget(key);
        0
    }
}

/// 13, and the rule that no user code runs under a lock.
#[tokio::test(start_paused = true)]
async fn limiters_groups_and_reasons_are_asked_without_the_lock() {
    let place = Arc::<OnceLock<WorkQueue<u32>>>::default();
    let queue = WorkQueue::builder()
        .rate_limiter(Nosy(Arc::clone(&place)))
        .fair_by({
            let place = Arc::clone(&place);
            move |_| place.get().unwrap().len()
        })
        .build();
    place.set(queue.clone()).unwrap();
    queue.add(1);
    queue.add_rate_limited(2);
    queue.forget(&2);
    queue.num_requeues(&2);
    assert_eq!(queue.dump_with(|_| Some(queue.len().to_string())).keys.len(), 2);
}

/// 14: controller-runtime#2374 and kube-rs, which gives keys out in the order of their hashes.
#[tokio::test(start_paused = true)]
async fn many_keys_come_out_first_in_first_out_within_their_priority() {
    let queue = WorkQueue::default();
    for key in 0..100_000_u32 {
        let priority = if key % 2 == 0 { Priority::LOW } else { Priority::NORMAL };
        queue.add_with(key, AddOptions { priority: Some(priority), ..AddOptions::default() });
    }
    for key in (1..100_000).step_by(2).chain((0..100_000).step_by(2)) {
        assert_eq!(queue.get().await, Some(key));
    }
}

/// 14: low priority must not starve under a steady flood of live changes.
#[tokio::test(start_paused = true)]
async fn a_flood_of_live_changes_does_not_starve_the_initial_list() {
    let queue = WorkQueue::default();
    queue.add_with(0_u32, AddOptions { priority: Some(Priority::LOW), ..AddOptions::default() });
    let start = Instant::now();
    // Two changes come for each one that is worked off: the queue only ever grows.
    for round in 1.. {
        queue.add(2 * round);
        queue.add(2 * round + 1);
        let key = queue.get().await.unwrap();
        queue.done(&key);
        if key == 0 {
            break;
        }
        advance(Duration::from_millis(10)).await;
        assert!(start.elapsed() < 60 * SECOND, "the key starves");
    }
    // When it was added, everything that was added ten seconds later or more was behind it.
    assert!(start.elapsed() >= 10 * SECOND, "{:?}", start.elapsed());
}

/// 16: tokio's `DelayQueue` panics beyond two years, kube-rs#1772.
#[tokio::test(start_paused = true)]
async fn a_far_future_is_capped_and_still_comes() {
    let queue = WorkQueue::default();
    let start = Instant::now();
    queue.add_after("far", Duration::MAX);
    queue.add_after("near", SECOND);
    assert_eq!(queue.get().await, Some("near"));
    assert_eq!(queue.get().await, Some("far"));
    assert_eq!(start.elapsed(), LONGEST_DELAY);
}
