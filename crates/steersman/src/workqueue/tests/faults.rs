//! Users' code that panics must not take keys or workers with it.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use futures::FutureExt;
use tokio::time::{Instant, timeout};

use crate::workqueue::{RateLimiter, WorkQueue};

const SECOND: Duration = Duration::from_secs(1);

struct Broken;

impl<T> RateLimiter<T> for Broken {
    fn failed(&self, _: &T) -> Duration {
        panic!("no idea how long")
    }

    fn forget(&self, _: &T) {
        panic!("never forget")
    }

    fn failures(&self, _: &T) -> u32 {
        panic!("none of your business")
    }
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_panics_costs_a_second_and_neither_key_nor_worker() {
    let queue = WorkQueue::new(Broken);
    queue.add("a");
    let start = Instant::now();
    for seconds in 1..4 {
        let key = queue.get().await.unwrap();
        queue.add_rate_limited(key);
        queue.done(&key);
        assert_eq!(queue.get().await, Some("a"));
        assert_eq!(start.elapsed(), seconds * SECOND);
        queue.add(key);
        queue.done(&key);
    }
    queue.forget(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
    assert_eq!(queue.dump().keys.len(), 1);
}

/// A key that can be copied once its switch is off. Copying turns it off.
#[derive(Debug)]
struct Fragile(u32, Arc<AtomicBool>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!self.1.swap(false, SeqCst), "this key cannot be copied yet");
        Self(self.0, Arc::clone(&self.1))
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Fragile {}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_panics_when_it_is_copied_does_not_confuse_the_other_workers() {
    let queue = WorkQueue::default();
    let mut unlucky = Box::pin(queue.get());
    assert!(futures::poll!(&mut unlucky).is_pending());
    queue.add(Fragile(1, Arc::new(true.into())));
    let unlucky = AssertUnwindSafe(|| unlucky.now_or_never());
    assert!(catch_unwind(unlucky).is_err());
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await }
    });
    tokio::task::yield_now().await;
    queue.add(Fragile(2, Arc::default()));
    let taken = timeout(SECOND, worker).await.expect("the worker is woken");
    assert_eq!(taken.unwrap().unwrap().0, 2);
    // The broken key counts as worked on, and can be asked for again.
    queue.done(&Fragile(1, Arc::default()));
    queue.add(Fragile(1, Arc::default()));
    assert_eq!(queue.get().await.unwrap().0, 1);
}
