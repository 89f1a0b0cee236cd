//! When containers were made, started and ended, by the agent's clock.
//!
//! The runtime tells these times by the system's clock, which somebody may set at any moment, by hours
//! and in either direction. Whatever is waited for after them, such as a back-off or the first look of
//! a probe, goes by the agent's [clock], which only goes on. What the agent knows by itself is in
//! which state it has seen a container last, and when: nothing has happened to it before that, nor
//! later than now.

use jiff::Timestamp;
use steersman::clock;

use super::{Shared, locked};
use crate::cri::wire::container::{Container as Listed, ContainerState, ContainerStatus};

/// What is known of a container.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// As the runtime said it, but for the times.
    pub(super) status: ContainerStatus,
    /// When it was seen last to be in that state.
    seen: Timestamp,
}

impl Known {
    /// One that was made now.
    pub(super) fn made() -> Self {
        let seen = clock::now();
        let created = ContainerState::Created.into();
        let status = ContainerStatus {
            state: created,
            created_at: nanoseconds(seen),
            ..ContainerStatus::default()
        };
        Self { status, seen }
    }

    /// One of which the runtime says this now, and something else `before`.
    pub(super) fn now(mut status: ContainerStatus, before: Option<&Self>) -> Self {
        let seen = clock::now();
        place(&mut status, before, seen);
        Self { status, seen }
    }
}

/// Takes in that containers were in these states when somebody began to ask.
pub(super) fn confirm(shared: &Shared, listed: &[Listed], asked: Timestamp) {
    let mut seen = locked(&shared.seen);
    for one in listed {
        if let Some(known) = seen.containers.get_mut(&one.id)
            && known.status.state == one.state
        {
            known.seen = known.seen.max(asked);
        }
    }
}

/// Makes the times of a container those that they can have been.
fn place(status: &mut ContainerStatus, before: Option<&Known>, now: Timestamp) {
    let now = nanoseconds(now);
    let seen = before.map_or(i64::MIN, |before| nanoseconds(before.seen));
    let told = before.map(|before| &before.status);
    let between = |time: i64, earliest: i64| time.clamp(earliest.min(now), now);
    status.created_at = told.map_or(status.created_at.min(now), |told| told.created_at);
    // Zero is what has not happened.
    let started = told.map_or(0, |told| told.started_at);
    if started > 0 {
        status.started_at = started;
    } else if status.started_at > 0 {
        status.started_at = between(status.started_at, seen);
    }
    if status.finished_at > 0 {
        status.finished_at = between(status.finished_at, seen.max(status.started_at));
    }
}

fn nanoseconds(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_nanosecond()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const HOUR: i64 = 3600 * SECOND;
    /// What it is now, in nanoseconds.
    const NOW: i64 = 1_000_000 * SECOND;

    fn at(nanoseconds: i64) -> Timestamp {
        Timestamp::from_nanosecond(nanoseconds.into()).unwrap()
    }

    fn status(created_at: i64, started_at: i64, finished_at: i64) -> ContainerStatus {
        ContainerStatus { created_at, started_at, finished_at, ..ContainerStatus::default() }
    }

    fn placed(said: ContainerStatus, before: Option<(ContainerStatus, i64)>) -> [i64; 3] {
        let before = before.map(|(status, seen)| Known { status, seen: at(seen) });
        let mut status = said;
        place(&mut status, before.as_ref(), at(NOW));
        [status.created_at, status.started_at, status.finished_at]
    }

    #[test]
    fn times_of_a_clock_that_nobody_has_set_stay_as_they_are() {
        let [made, began, ended] = [NOW - 9 * SECOND, NOW - 8 * SECOND, NOW - SECOND / 2];
        assert_eq!(placed(status(made, began, 0), None), [made, began, 0]);
        assert_eq!(placed(status(made, began, ended), None), [made, began, ended]);
        let running = (status(made, began, 0), NOW - SECOND);
        assert_eq!(placed(status(made, began, ended), Some(running)), [made, began, ended]);
    }

    #[test]
    fn a_clock_that_was_set_moves_nothing_beyond_what_was_seen() {
        let [made, began, seen] = [NOW - 9 * SECOND, NOW - 8 * SECOND, NOW - SECOND];
        for set in [HOUR, -HOUR, 1000 * HOUR, -250 * HOUR] {
            let by = |time: i64| time + set;
            // It is made by this agent, and starts.
            let [_, started, _] =
                placed(status(by(made), by(began), 0), Some((status(made, 0, 0), made)));
            assert!((made..=NOW).contains(&started), "{set}: {started}");
            // It was seen to run a second ago.
            let running = (status(made, began, 0), seen);
            let [_, started, ended] = placed(status(by(made), by(began), by(NOW)), Some(running));
            assert_eq!(started, began);
            assert!((seen..=NOW).contains(&ended), "{set}: {ended}");
        }
        // Of what another agent has started only this is known.
        assert_eq!(placed(status(NOW + HOUR, NOW + HOUR, 0), None), [NOW, NOW, 0]);
        assert_eq!(placed(status(i64::MIN, i64::MAX, i64::MAX), None), [i64::MIN, NOW, NOW]);
    }
}
