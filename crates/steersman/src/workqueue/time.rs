//! Moments of a queue: nanoseconds since it was built, and the timer that waits for one.
//!
//! The queue's parts below the lock are given the time and never ask for it. In tests that run
//! under shuttle, where there is no tokio, clock and timer are simulated.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

#[cfg(test)]
use super::tests::simulation;

/// Nanoseconds since the queue was built: half the size of an `Instant`, and comparable with
/// one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tick(pub(super) u64);

impl Tick {
    /// A moment that nobody needed to know.
    pub(super) const UNTIMED: Self = Self(u64::MAX);

    /// The moment, if it was of interest.
    pub(super) fn known(self) -> Option<Self> {
        (self != Self::UNTIMED).then_some(self)
    }

    pub(super) fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(nanos(delay)))
    }

    /// How long ago `earlier` was; nothing if it is yet to come.
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells the time of one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    built: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { built: Instant::now() }
    }

    pub(super) fn now(self) -> Tick {
        #[cfg(test)]
        if let Some(now) = simulation::now() {
            return now;
        }
        Tick(nanos(self.built.elapsed()))
    }

    fn instant(self, tick: Tick) -> Instant {
        self.built + Duration::from_nanos(tick.0)
    }
}

/// Waits for a moment; made when it is first needed, set anew when the moment changes.
#[derive(Default)]
pub(super) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready once `due` has come; otherwise wakes the task then.
    pub(super) fn poll_until(&mut self, clock: Clock, due: Tick, cx: &mut Context<'_>) -> Poll<()> {
        #[cfg(test)]
        if simulation::now().is_some() {
            return simulation::poll_until(due, cx);
        }
        let deadline = clock.instant(due);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }
}
