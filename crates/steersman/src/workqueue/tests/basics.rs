use std::time::Duration;

use tokio::time::Instant;

use crate::Metrics;
use crate::workqueue::{FastSlow, WorkQueue};

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::default()
}

async fn take(queue: &WorkQueue<&'static str>) -> &'static str {
    queue.get().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn keys_come_out_in_the_order_they_went_in() {
    let queue = queue();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    assert_eq!([take(&queue).await, take(&queue).await, take(&queue).await], ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_key_is_not_added_twice() {
    let queue = queue();
    queue.add("a");
    queue.add("a");
    assert_eq!(queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_it_is_worked_on_runs_once_more_and_not_at_once() {
    let queue = queue();
    queue.add("a");
    let key = take(&queue).await;
    queue.add("a");
    queue.add("a");
    assert_eq!(queue.len(), 0, "it must not run twice at the same time");
    queue.done(&key);
    assert_eq!(queue.len(), 1);
    let key = take(&queue).await;
    queue.done(&key);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_comes_when_it_is_due_and_the_earliest_time_counts() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("a", Duration::from_secs(60));
    queue.add_after("a", Duration::from_secs(10));
    queue.add_after("a", Duration::from_secs(30));
    let key = take(&queue).await;
    assert_eq!(start.elapsed().as_secs(), 10);
    queue.done(&key);
    assert!(tokio::time::timeout(Duration::from_secs(3600), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn adding_a_key_now_cancels_its_delay() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(60));
    queue.add("a");
    let key = take(&queue).await;
    queue.done(&key);
    assert!(tokio::time::timeout(Duration::from_secs(3600), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_shorter_delay_wakes_a_worker_that_sleeps_towards_a_longer_one() {
    let queue = queue();
    queue.add_after("late", Duration::from_secs(100));
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { (queue.get().await, Instant::now()) }
    });
    tokio::task::yield_now().await;
    let start = Instant::now();
    queue.add_after("soon", Duration::from_secs(1));
    let (key, at) = worker.await.unwrap();
    assert_eq!((key, (at - start).as_secs()), (Some("soon"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_all_reason_is_capped() {
    let queue = queue();
    queue.add_after("a", Duration::MAX);
    assert_eq!(take(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn retries_back_off_per_key_and_start_over_once_forgotten() {
    let queue = queue();
    let mut last = Duration::ZERO;
    for failures in 1..=12 {
        let start = Instant::now();
        queue.add_rate_limited("a");
        let key = take(&queue).await;
        assert!(start.elapsed() > last.mul_f64(1.5));
        last = start.elapsed();
        queue.done(&key);
        assert_eq!(queue.num_requeues(&"a"), failures);
    }
    assert_eq!(queue.num_requeues(&"b"), 0);
    queue.forget(&"a");
    let start = Instant::now();
    queue.add_rate_limited("a");
    take(&queue).await;
    assert!(start.elapsed() < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_came_early_does_not_raise_the_failure_count() {
    let queue = queue();
    for _ in 0..8 {
        queue.add_rate_limited("a");
        let key = take(&queue).await;
        queue.done(&key);
    }
    let failures = queue.num_requeues(&"a");
    queue.add_rate_limited("a");
    for _ in 0..20 {
        queue.add("a"); // an event, long before the retry is due
        let key = take(&queue).await;
        queue.add_rate_limited(key);
        queue.done(&key);
    }
    assert_eq!(queue.num_requeues(&"a"), failures + 1);
    let start = Instant::now();
    take(&queue).await;
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

/// Fails once, then begins a second run early, which ends only after the back-off.
async fn fail_early_and_long(queue: &WorkQueue<&'static str>) {
    queue.add("a");
    let key = take(queue).await;
    queue.add_rate_limited(key); // for 60 seconds
    queue.done(&key);
    queue.add(key);
    let key = take(queue).await;
    tokio::time::advance(Duration::from_secs(70)).await;
    queue.add_rate_limited(key);
    queue.done(&key);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_early_if_it_began_early_however_long_it_took() {
    let limiter = || FastSlow::new(Duration::from_secs(60), Duration::from_secs(600));
    let plain = WorkQueue::new(limiter());
    let measured = WorkQueue::builder().rate_limiter(limiter()).metrics(&Metrics::default());
    for queue in [plain, measured.build()] {
        fail_early_and_long(&queue).await;
        assert_eq!(queue.num_requeues(&"a"), 1);
        let start = Instant::now();
        let key = take(&queue).await; // the back-off of the first failure has passed
        assert_eq!(start.elapsed(), Duration::ZERO);
        queue.add_rate_limited(key);
        assert_eq!(queue.num_requeues(&"a"), 2, "this run was on time");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_worker_of_a_queue_that_is_never_empty_lets_other_tasks_run() {
    let queue = queue();
    queue.add("a");
    let other = tokio::spawn(async {});
    for _ in 0..100_000 {
        if other.is_finished() {
            return;
        }
        let key = take(&queue).await;
        queue.add(key);
        queue.done(&key);
    }
    panic!("the other task never ran");
}

#[tokio::test(start_paused = true)]
async fn keys_that_become_due_together_reach_all_workers() {
    let queue: WorkQueue<u32> = WorkQueue::default();
    for key in 0..8 {
        queue.add_after(key, Duration::from_secs(1));
    }
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await })
        })
        .collect();
    let mut taken = Vec::new();
    for worker in workers {
        taken.push(worker.await.unwrap().unwrap());
    }
    taken.sort_unstable();
    assert_eq!(taken, (0..8).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn shutting_down_wakes_every_worker_and_accepts_nothing_more() {
    let queue = queue();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in workers {
        assert_eq!(worker.await.unwrap(), None);
    }
    queue.add("a");
    assert_eq!(queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_gives_up_waiting_leaves_the_key_to_another() {
    let queue = queue();
    let mut leaving = Box::pin(queue.get());
    assert!(futures::poll!(&mut leaving).is_pending());
    let staying = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await }
    });
    tokio::task::yield_now().await;
    queue.add("a");
    queue.add("b");
    drop(leaving);
    assert!(staying.await.unwrap().is_some());
    assert!(queue.get().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn draining_finishes_what_is_ready_and_running_and_forgets_what_is_later() {
    let queue = queue();
    for key in ["a", "b"] {
        queue.add(key);
    }
    let a = take(&queue).await;
    queue.add(a);
    queue.add_after("later", Duration::from_secs(1));
    let mut drained = Box::pin(queue.shut_down_with_drain());
    queue.add("too late");
    assert!(queue.is_shutting_down() && futures::poll!(&mut drained).is_pending());
    let b = take(&queue).await;
    queue.done(&b);
    queue.done(&a);
    assert!(futures::poll!(&mut drained).is_pending());
    let a = take(&queue).await;
    assert_eq!((a, queue.get().await), ("a", None), "nothing is left to take");
    queue.done(&a);
    drained.await;
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_that_is_due_when_draining_begins_is_still_worked_on() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(1));
    tokio::time::advance(Duration::from_secs(1)).await;
    drop(queue.shut_down_with_drain());
    assert_eq!(take(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn shutting_down_gives_out_nothing_more_and_ends_a_drain_once_running_keys_are_done() {
    let queue = queue();
    for key in ["a", "b"] {
        queue.add(key);
    }
    let a = take(&queue).await;
    let mut drained = Box::pin(queue.shut_down_with_drain());
    queue.shut_down();
    assert_eq!((queue.get().await, queue.len()), (None, 0));
    assert!(futures::poll!(&mut drained).is_pending());
    queue.done(&a);
    drained.await;
}
