//! Clock and timers of tests that run under shuttle, where there is no tokio. Shuttle runs all
//! tasks of an execution on one thread, so a thread-local clock is theirs alone.

use std::cell::RefCell;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::workqueue::time::Tick;

/// How many schedules of each kind a scenario runs under.
const SCHEDULES: usize = 600;

#[derive(Default)]
struct Simulation {
    now: Tick,
    sleepers: Vec<(Tick, Waker)>,
}

thread_local! {
    static SIMULATION: RefCell<Option<Simulation>> = const { RefCell::new(None) };
}

/// The simulated time, if this thread simulates.
pub(in crate::workqueue) fn now() -> Option<Tick> {
    SIMULATION.with_borrow(|simulation| simulation.as_ref().map(|simulation| simulation.now))
}

/// Ready once `due` has come; otherwise wakes the task then.
pub(in crate::workqueue) fn poll_until(due: Tick, cx: &Context<'_>) -> Poll<()> {
    SIMULATION.with_borrow_mut(|simulation| {
        let simulation = simulation.as_mut().unwrap();
        if simulation.now >= due {
            return Poll::Ready(());
        }
        simulation.sleepers.push((due, cx.waker().clone()));
        Poll::Pending
    })
}

/// Lets time pass and wakes whoever slept until then.
pub(super) fn advance(by: Duration) {
    let woken: Vec<_> = SIMULATION.with_borrow_mut(|simulation| {
        let simulation = simulation.as_mut().unwrap();
        simulation.now = simulation.now.after(by);
        let now = simulation.now;
        simulation.sleepers.extract_if(.., |(due, _)| *due <= now).collect()
    });
    for (_, waker) in woken {
        waker.wake();
    }
}

/// Runs a scenario under many schedules, each with a clock of its own. A schedule that fails is
/// printed, and shuttle can replay it.
pub(super) fn explore(scenario: fn()) {
    let once = move || {
        SIMULATION.set(Some(Simulation::default()));
        scenario();
        SIMULATION.set(None);
    };
    shuttle::check_random(once, SCHEDULES);
    shuttle::check_pct(once, SCHEDULES, 3);
}
