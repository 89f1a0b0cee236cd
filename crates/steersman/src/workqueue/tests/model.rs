//! The queue against a naive one under random operations. A failure prints the shortest
//! sequence of operations that shows it.

use std::time::Duration;

use futures::FutureExt;
use proptest::prelude::*;

use crate::Metrics;
use crate::workqueue::{AddOptions, FastSlow, HEAD_START, Priority, WorkQueue, WorkQueueBuilder};

const FAST: Duration = Duration::from_millis(50);
const SLOW: Duration = Duration::from_millis(400);

#[derive(Clone, Debug)]
enum Op {
    Add(u8),
    AddWith(u8, AddOptions),
    AddRateLimited(u8),
    Forget(u8),
    Get,
    Done(u8),
    Pass(Duration),
    Drain,
    ShutDown,
}

fn operations() -> impl Strategy<Value = Vec<Op>> {
    let key = || 0..6_u8;
    let time = || (0..60_u64).prop_map(|tenths| Duration::from_millis(tenths * 25));
    let priority = prop_oneof![Just(-100), -3..3_i32].prop_map(Priority);
    let options = (time(), prop::option::of(priority)).prop_map(|(after, priority)| AddOptions {
        after,
        priority,
        rate_limited: false,
    });
    let op = prop_oneof![
        20 => key().prop_map(Op::Add),
        20 => (key(), options).prop_map(|(key, options)| Op::AddWith(key, options)),
        10 => key().prop_map(Op::AddRateLimited),
        4 => key().prop_map(Op::Forget),
        30 => Just(Op::Get),
        25 => key().prop_map(Op::Done),
        15 => time().prop_map(Op::Pass),
        1 => Just(Op::Drain),
        1 => Just(Op::ShutDown),
    ];
    prop::collection::vec(op, 1..120)
}

/// A key that is wanted now, once for each priority that it has been given meanwhile.
#[derive(Clone, Debug)]
struct Place {
    key: u8,
    priority: Priority,
    added: Duration,
}

/// A key that is wanted later.
#[derive(Clone, Debug)]
struct Later {
    key: u8,
    priority: Priority,
    due: Duration,
}

/// The naive queue: lists that are searched from one end to the other.
#[derive(Debug, Default)]
struct Model {
    now: Duration,
    /// What a worker could take, in the order of arrival.
    waiting: Vec<Place>,
    later: Vec<Later>,
    /// What is worked on, with which priority.
    running: Vec<(u8, Priority)>,
    /// What is worked on and wanted again: its priority, and since when.
    again: Vec<(u8, Priority, Duration)>,
    failures: Vec<u8>,
    backing_off: Vec<(u8, Duration)>,
    draining: bool,
    stopped: bool,
}

impl Model {
    fn add(&mut self, key: u8, after: Duration, priority: Option<Priority>) {
        if self.draining || self.stopped {
            return;
        }
        let priority = priority.or(self.priority_of(key)).unwrap_or(Priority::NORMAL);
        let due = self.now + after;
        if let Some(place) = self.again.iter_mut().find(|(other, ..)| *other == key) {
            place.1 = place.1.max(priority);
        } else if self.waiting.iter().any(|place| place.key == key) {
            if self.waiting.iter().all(|place| place.key != key || place.priority < priority) {
                self.waiting.push(Place { key, priority, added: self.now });
            }
        } else if let Some(at) = self.later.iter().position(|later| later.key == key) {
            let old = self.later[at].clone();
            let priority = old.priority.max(priority);
            self.later[at].priority = priority;
            if due < old.due {
                self.later.remove(at);
                self.want(Later { key, priority, due });
            }
        } else {
            self.want(Later { key, priority, due });
        }
    }

    fn want(&mut self, wanted: Later) {
        let Later { key, priority, due } = wanted;
        if due > self.now {
            self.later.push(wanted);
        } else if self.is_running(key) {
            self.again.push((key, priority, due));
        } else {
            self.waiting.push(Place { key, priority, added: due });
        }
    }

    fn priority_of(&self, key: u8) -> Option<Priority> {
        let waiting = self.waiting.iter().filter(|place| place.key == key).map(|p| p.priority);
        let again = self.again.iter().filter(|(other, ..)| *other == key).map(|a| a.1);
        let later = self.later.iter().filter(|later| later.key == key).map(|l| l.priority);
        let running = self.running.iter().filter(|(other, _)| *other == key).map(|r| r.1);
        waiting.chain(again).chain(later).max().or(running.max())
    }

    fn add_rate_limited(&mut self, key: u8) {
        let rest = match self.backing_off.iter().find(|(other, _)| *other == key) {
            Some((_, until)) if *until > self.now => *until - self.now,
            _ => {
                self.failures.push(key);
                let delay = if self.failures(key) <= 2 { FAST } else { SLOW };
                self.backing_off.retain(|(other, _)| *other != key);
                self.backing_off.push((key, self.now + delay));
                delay
            }
        };
        self.add(key, rest, None);
    }

    fn forget(&mut self, key: u8) {
        self.failures.retain(|other| *other != key);
        self.backing_off.retain(|(other, _)| *other != key);
    }

    fn failures(&self, key: u8) -> u32 {
        self.failures.iter().filter(|other| **other == key).count() as u32
    }

    /// The next key: of the first of each priority, the one that ranks lowest.
    fn get(&mut self) -> Option<Option<u8>> {
        let mut firsts: Vec<Place> = Vec::new();
        for place in &self.waiting {
            if firsts.iter().all(|first| first.priority != place.priority) {
                firsts.push(place.clone());
            }
        }
        // A second is ten steps of priority.
        let rank = |place: &Place| {
            let head_start = HEAD_START.as_millis() as i64 * i64::from(place.priority.0);
            (place.added.as_millis() as i64 - head_start, std::cmp::Reverse(place.priority))
        };
        let Some(next) = firsts.into_iter().min_by_key(rank) else {
            let ended = self.stopped || (self.draining && self.again.is_empty());
            return ended.then_some(None);
        };
        let priority = self.priority_of(next.key).unwrap();
        self.waiting.retain(|place| place.key != next.key);
        self.running.push((next.key, priority));
        Some(Some(next.key))
    }

    fn is_running(&self, key: u8) -> bool {
        self.running.iter().any(|(running, _)| *running == key)
    }

    fn done(&mut self, key: u8) {
        self.running.retain(|(running, _)| *running != key);
        if let Some(at) = self.again.iter().position(|(other, ..)| *other == key) {
            let (key, priority, added) = self.again.remove(at);
            self.waiting.push(Place { key, priority, added });
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.later.sort_by_key(|later| later.due); // stable: first asked, first due
        while self.later.first().is_some_and(|later| later.due <= self.now) {
            let due = self.later.remove(0);
            self.want(due);
        }
    }

    fn drain(&mut self) {
        self.draining = true;
        self.later.clear();
    }

    fn shut_down(&mut self) {
        self.stopped = true;
        self.later.clear();
        self.waiting.clear();
        self.again.clear();
    }

    fn len(&self) -> usize {
        let mut keys: Vec<_> = self.waiting.iter().map(|place| place.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }

    fn is_drained(&self) -> bool {
        (self.draining || self.stopped) && self.waiting.is_empty() && self.running.is_empty()
    }
}

async fn compare(queue: WorkQueue<u8>, operations: Vec<Op>) {
    let mut model = Model::default();
    for op in operations {
        match op.clone() {
            Op::Add(key) => {
                queue.add(key);
                model.add(key, Duration::ZERO, Some(Priority::NORMAL));
            }
            Op::AddWith(key, options) => {
                queue.add_with(key, options);
                let now = options.after.is_zero().then_some(Priority::NORMAL);
                model.add(key, options.after, options.priority.or(now));
            }
            Op::AddRateLimited(key) => {
                queue.add_rate_limited(key);
                model.add_rate_limited(key);
            }
            Op::Forget(key) => {
                queue.forget(&key);
                model.forget(key);
            }
            Op::Get => assert_eq!(queue.get().now_or_never(), model.get(), "{model:#?}"),
            Op::Done(key) => {
                queue.done(&key);
                model.done(key);
            }
            Op::Pass(time) => {
                tokio::time::advance(time).await;
                model.pass(time);
            }
            Op::Drain => {
                let drained = queue.shut_down_with_drain().now_or_never().is_some();
                model.drain();
                assert_eq!(drained, model.is_drained(), "{model:#?}");
            }
            Op::ShutDown => {
                queue.shut_down();
                model.shut_down();
            }
        }
        assert_eq!(queue.len(), model.len(), "after {op:?}: {model:#?}");
        for key in 0..6 {
            assert_eq!(queue.num_requeues(&key), model.failures(key), "after {op:?}");
        }
    }
}

fn run(operations: Vec<Op>, change: impl FnOnce(WorkQueueBuilder<u8>) -> WorkQueueBuilder<u8>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let limiter = FastSlow::new(FAST, SLOW).fast_attempts(2);
        let queue = change(WorkQueue::builder().rate_limiter(limiter)).build();
        compare(queue, operations).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_queue_does_what_a_naive_one_does(operations in operations()) {
        run(operations, |queue| queue.metrics(&Metrics::default()));
    }

    /// A queue that does not read the clock when it need not.
    #[test]
    fn without_priorities_and_metrics_it_does_so_as_well(operations in operations()) {
        let normal = |op| match op {
            Op::AddWith(key, options) => {
                Op::AddWith(key, AddOptions { priority: None, ..options })
            }
            other => other,
        };
        run(operations.into_iter().map(normal).collect(), |queue| queue);
    }
}
