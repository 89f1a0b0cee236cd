//! Randomness that can be had again: a test that fails shows its seed.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The variable that gives a seed.
const VARIABLE: &str = "STEERSMAN_TEST_SEED";

/// A source of randomness, from the seed that the environment gives or a new one. What a test
/// prints is shown when it fails.
#[expect(clippy::print_stdout, reason = "the harness shows it when the test fails")]
pub(crate) fn random() -> StdRng {
    let given = std::env::var(VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| rand::rng().random());
    println!("to run with the same randomness: {VARIABLE}={seed}");
    StdRng::seed_from_u64(seed)
}

/// Another source, independent of what is drawn from the first later.
pub(crate) fn branch(random: &mut StdRng) -> StdRng {
    StdRng::seed_from_u64(random.random())
}
