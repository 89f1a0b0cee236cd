//! Chance that follows from a seed.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A seeded source of choices.
pub(super) struct Dice(StdRng);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number from `least` up to and without `limit`.
    pub(super) fn between(&mut self, least: u64, limit: u64) -> u64 {
        least + self.0.next_u64() % limit.saturating_sub(least).max(1)
    }

    /// True so many times of a hundred.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.between(0, 100) < percent
    }

    /// One of these.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[usize::try_from(self.between(0, from.len() as u64)).unwrap_or_default()]
    }

    /// Each of these with the same chance, in their order; at least one.
    pub(super) fn some<'a, T: ?Sized>(&mut self, from: &[&'a T], percent: u64) -> Vec<&'a T> {
        let mut some: Vec<&T> = from.iter().copied().filter(|_| self.chance(percent)).collect();
        if some.is_empty() {
            some.push(self.pick(from));
        }
        some
    }
}
