//! The one source of randomness, which a test can seed.
//!
//! Each thread has its own generator, seeded by the system unless [`seed`] was called on that
//! thread. A cluster on a single-threaded runtime is thereby reproducible from one number.

use std::cell::RefCell;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

thread_local! {
    static GENERATOR: RefCell<StdRng> = RefCell::new(rand::make_rng());
}

/// Makes everything random on this thread follow from `seed`.
pub fn seed(seed: u64) {
    GENERATOR.with_borrow_mut(|generator| *generator = StdRng::seed_from_u64(seed));
}

/// A random number.
pub fn next_u64() -> u64 {
    GENERATOR.with_borrow_mut(RngExt::random)
}

/// `base` lengthened by up to `factor` of itself, so that many waits do not end together.
pub fn jitter(base: Duration, factor: f64) -> Duration {
    let share: f64 = GENERATOR.with_borrow_mut(RngExt::random);
    base.saturating_add(base.mul_f64((share * factor).max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        seed(7);
        let first = (next_u64(), next_u64());
        seed(7);
        assert_eq!(first, (next_u64(), next_u64()));
    }

    #[test]
    fn jitter_only_lengthens_and_only_by_its_factor() {
        let base = Duration::from_secs(10);
        for _ in 0..100 {
            let jittered = jitter(base, 0.5);
            assert!(jittered >= base && jittered <= Duration::from_secs(15));
        }
    }
}
