//! The queue against a naive one under random operations. A failure prints the shortest
//! sequence of operations that shows it.

mod reference;

use std::time::Duration;

use futures::FutureExt;
use proptest::prelude::*;

use crate::Metrics;
use crate::workqueue::{AddOptions, FastSlow, Priority, WorkQueue};
use reference::{Kind, Model};

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

async fn compare(queue: WorkQueue<u8>, mut model: Model, operations: Vec<Op>) {
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

fn build(kind: Kind) -> WorkQueue<u8> {
    let limiter = FastSlow::new(FAST, SLOW).fast_attempts(2);
    let mut queue = WorkQueue::builder().rate_limiter(limiter);
    if kind.timed {
        queue = queue.metrics(&Metrics::default());
    }
    if kind.fair {
        queue = queue.fair_by(move |key| kind.group_of(*key));
    }
    queue.build()
}

fn run(operations: Vec<Op>, kind: Kind) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async { compare(build(kind), Model::new(kind), operations).await });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_queue_does_what_a_naive_one_does(operations in operations()) {
        run(operations, Kind { timed: true, fair: false });
    }

    /// A queue that does not read the clock when it need not.
    #[test]
    fn without_metrics_it_does_so_as_well(operations in operations()) {
        run(operations, Kind { timed: false, fair: false });
    }

    #[test]
    fn so_it_does_when_groups_take_turns(operations in operations()) {
        run(operations, Kind { timed: true, fair: true });
    }

    #[test]
    fn so_it_does_when_groups_take_turns_without_metrics(operations in operations()) {
        run(operations, Kind { timed: false, fair: true });
    }
}
