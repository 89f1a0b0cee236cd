//! The one clock: wall-clock time that follows tokio's.
//!
//! [`now`] is the system's time when the process started plus what tokio's clock has counted
//! since. On a runtime with a paused clock, time therefore stands still until every task
//! waits, and then jumps: timestamps in objects agree with the timers around them. Nor does it
//! jump when somebody sets the system's clock.

use std::cell::Cell;
use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};

/// A moment on tokio's clock and the wall-clock time it stands for.
#[derive(Clone, Copy)]
struct Anchor {
    instant: std::time::Instant,
    timestamp: Timestamp,
}

static PROCESS: OnceLock<Anchor> = OnceLock::new();

/// What is less than this is not taken for a clock that was set.
const SET_LEAST: SignedDuration = SignedDuration::from_secs(1);

thread_local! {
    /// Replaces the process's anchor on this thread; see [`start_at`].
    static THREAD: Cell<Option<Anchor>> = const { Cell::new(None) };
    /// What [`next_nanosecond`] gave last on this thread.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// For how long a clock may stand still while [`next_nanosecond`] counts on.
const STANDSTILL: u64 = 1_000_000;

/// The current time.
pub fn now() -> Timestamp {
    at(tokio::time::Instant::now())
}

/// The time by the system's clock, which somebody may have set since this process was started. For
/// what others have dated, such as certificates; to measure how long something takes, use [`now`].
pub fn of_system() -> Timestamp {
    let set = if THREAD.get().is_some() { SignedDuration::ZERO } else { set_by() };
    now().checked_add(set).unwrap_or(Timestamp::MAX)
}

/// By how much the system's clock was set since this process was started.
#[expect(clippy::disallowed_methods, reason = "the system's clock is compared with itself")]
fn set_by() -> SignedDuration {
    let anchor = *PROCESS.get_or_init(Anchor::of_the_system);
    let passed = SignedDuration::try_from(anchor.instant.elapsed()).unwrap_or(SignedDuration::MAX);
    let expected = anchor.timestamp.checked_add(passed).unwrap_or(Timestamp::MAX);
    apart(Timestamp::now(), expected)
}

/// How far a clock is from where it was expected, if that is more than reading it can make out.
fn apart(found: Timestamp, expected: Timestamp) -> SignedDuration {
    let apart = found.duration_since(expected);
    if apart.abs() < SET_LEAST { SignedDuration::ZERO } else { apart }
}

/// The time that it is, or was, at this moment.
pub fn at(moment: tokio::time::Instant) -> Timestamp {
    let anchor = THREAD.get().unwrap_or_else(|| *PROCESS.get_or_init(Anchor::of_the_system));
    let instant = moment.into_std();
    let elapsed = match instant.checked_duration_since(anchor.instant) {
        Some(after) => SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX),
        None => -SignedDuration::try_from(anchor.instant - instant).unwrap_or(SignedDuration::MAX),
    };
    anchor.timestamp.checked_add(elapsed).unwrap_or(Timestamp::MAX)
}

/// The current time as objects carry it, to the second.
pub fn now_time() -> Time {
    time_at(tokio::time::Instant::now())
}

/// The time of a moment as objects carry it, to the second.
pub fn time_at(moment: tokio::time::Instant) -> Time {
    let seconds = at(moment).as_second();
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// The current time as Leases and Events carry it, to the microsecond.
pub fn now_micro_time() -> MicroTime {
    micro_time_at(tokio::time::Instant::now())
}

/// The time of a moment as Leases and Events carry it, to the microsecond.
pub fn micro_time_at(moment: tokio::time::Instant) -> MicroTime {
    let micros = at(moment).as_microsecond();
    MicroTime(Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// The nanoseconds since 1970, or a few more where this thread has asked before within the same one: a
/// number of its own for what happens, in the order in which it does, also on a clock that stands still.
pub(crate) fn next_nanosecond() -> u64 {
    let now = u64::try_from(now().as_nanosecond()).unwrap_or(0);
    let last = LAST.get();
    let next = if (now..now + STANDSTILL).contains(&last) { last + 1 } else { now };
    LAST.set(next);
    next
}

/// Declares that it is now `timestamp` on this thread. For tests that run a whole cluster on
/// one thread and want the same timestamps in every run.
pub fn start_at(timestamp: Timestamp) {
    let instant = tokio::time::Instant::now().into_std();
    THREAD.set(Some(Anchor { instant, timestamp }));
    LAST.set(0);
}

impl Anchor {
    #[expect(clippy::disallowed_methods, reason = "this is where the system's clock is read, once")]
    fn of_the_system() -> Self {
        Self { instant: std::time::Instant::now(), timestamp: Timestamp::now() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn timestamps_follow_the_virtual_clock() {
        let before = now();
        tokio::time::advance(Duration::from_secs(86_400)).await;
        assert_eq!(now().duration_since(before), SignedDuration::from_hours(24));
    }

    #[tokio::test(start_paused = true)]
    async fn a_system_clock_that_was_set_is_told_from_one_that_was_not() {
        tokio::time::advance(Duration::from_secs(86_400)).await;
        let apart_now = of_system().duration_since(now());
        assert!(apart_now.abs() < SET_LEAST, "nobody has set the clock: {apart_now:?}");
        let expected: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        for (seconds, set) in [(0.3, 0.0), (-0.3, 0.0), (3600.0, 3600.0), (-3600.0, -3600.0)] {
            let found = expected + SignedDuration::from_secs_f64(seconds);
            assert_eq!(apart(found, expected), SignedDuration::from_secs_f64(set));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_at_one_moment_has_numbers_in_its_order() {
        start_at("2030-01-01T12:00:00Z".parse().unwrap());
        let numbers = || [next_nanosecond(), next_nanosecond(), next_nanosecond()];
        let noon = 1_893_499_200_000_000_000;
        assert_eq!(numbers(), [noon, noon + 1, noon + 2]);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(next_nanosecond(), noon + 1_000_000);
        start_at("2030-01-01T12:00:00Z".parse().unwrap());
        assert_eq!(next_nanosecond(), noon, "the same in every run");
    }

    #[tokio::test(start_paused = true)]
    async fn a_test_can_say_what_time_it_is() {
        let noon: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        start_at(noon);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(now().to_string(), "2030-01-01T12:00:01Z");
    }
}
