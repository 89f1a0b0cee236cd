//! Whether threads want a lock all the time, so that one should let the other go on for a while.
//!
//! To hand a lock over from core to core costs more than most steps under it do: all that they touch
//! moves as well. Where two threads do little but take steps, they meet at nearly each, and one core
//! alone would be faster. Then whoever finds the lock taken had better stay away for some
//! hundred steps of the other. Where they meet now and then, the other does something else
//! soon, and to stay away would be a waste.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What a meeting adds to the heat; a step without one takes one off. So threads that meet in
/// less than every fifth step never make it hot.
const MEETING: u32 = 4;

/// The heat beyond which a lock is crowded.
const CROWDED: u32 = 32;

/// So many steps of others while a thread stayed away were worth it.
const WORTH: u32 = 64;

/// How crowded a lock is. Only who holds the lock changes anything.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// How often the lock was taken.
    steps: AtomicU32,
    heat: AtomicU32,
}

/// What a thread saw that found the lock taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting {
    steps: u32,
    /// Whether to stay away for a while.
    pub(super) crowded: bool,
}

impl Crowd {
    /// Notes that the lock was free.
    #[inline]
    pub(super) fn passed(&self) {
        self.step();
        let heat = self.heat.load(Relaxed);
        if heat > 0 {
            self.heat.store(heat - 1, Relaxed);
        }
    }

    /// Tells who finds the lock taken what to do.
    pub(super) fn meet(&self) -> Meeting {
        let crowded = self.heat.load(Relaxed) > CROWDED;
        Meeting { steps: self.steps.load(Relaxed), crowded }
    }

    /// Notes that the thread has the lock at last.
    pub(super) fn passed_after(&self, meeting: Meeting) {
        self.step();
        let meanwhile = self.steps.load(Relaxed).wrapping_sub(meeting.steps);
        let heat = match meeting.crowded {
            true if meanwhile < WORTH => 0,
            true => 2 * CROWDED,
            false => (self.heat.load(Relaxed) + MEETING).min(2 * CROWDED),
        };
        self.heat.store(heat, Relaxed);
    }

    fn step(&self) {
        self.steps.store(self.steps.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many rounds of a meeting and steps without one.
    fn rounds(crowd: &Crowd, rounds: usize, free: usize) {
        for _ in 0..rounds {
            crowd.passed_after(crowd.meet());
            (0..free).for_each(|_| crowd.passed());
        }
    }

    #[test]
    fn a_lock_is_crowded_where_threads_meet_at_every_other_step() {
        let crowd = Crowd::default();
        rounds(&crowd, 11, 1);
        assert!(crowd.meet().crowded);
    }

    #[test]
    fn a_lock_where_threads_meet_now_and_then_is_not() {
        let crowd = Crowd::default();
        for _ in 0..1000 {
            rounds(&crowd, 1, 5);
            assert!(!crowd.meet().crowded);
        }
    }

    #[test]
    fn a_lock_stays_crowded_as_long_as_others_take_many_steps_meanwhile() {
        let crowd = Crowd::default();
        rounds(&crowd, 11, 1);
        for steps in [300, 100, 300] {
            let meeting = crowd.meet();
            (0..steps).for_each(|_| crowd.passed());
            crowd.passed_after(meeting);
            assert!(crowd.meet().crowded);
        }
        let meeting = crowd.meet();
        (0..30).for_each(|_| crowd.passed());
        crowd.passed_after(meeting);
        assert!(!crowd.meet().crowded, "the other did something else most of the time");
    }
}
