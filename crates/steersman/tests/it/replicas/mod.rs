//! Several replicas on a bad network: never two of them act on the same thing.
//!
//! Each test runs whole replicas against one API server on virtual time, over links that are
//! held up, slow and lossy as a seed says. An oracle that trusts none of them looks at what was
//! done. `STEERSMAN_SEED=7` runs one seed only, such as one that failed.

mod leaders;
mod shards;
mod shards_at_scale;
mod write_log;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use steersman_testkit::{Condition, Link};

/// How many seeds the soak wants, where it runs.
pub(crate) fn many_seeds() -> Option<u64> {
    std::env::var("STEERSMAN_SEEDS").ok().map(|many| many.parse().unwrap())
}

/// Runs the seeds, on all processors. A seed that fails tells its number.
pub(crate) fn for_seeds(count: u64, run: impl Fn(u64) + Sync) {
    let count = many_seeds().unwrap_or(count);
    let seed = std::env::var("STEERSMAN_SEED").ok().map(|seed| seed.parse().unwrap());
    if let Some(seed) = seed {
        return run(seed);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    let _told = ToldIfItFails(seed);
                    run(seed);
                }
            });
        }
    });
}

struct ToldIfItFails(u64);

impl Drop for ToldIfItFails {
    #[expect(clippy::print_stderr, reason = "who sees the failure must know its seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with STEERSMAN_SEED={}", self.0);
        }
    }
}

/// Takes so much virtual time.
async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// Changes the condition of a link, or leaves it as it is.
fn stir(link: &Link, dice: &mut StdRng) {
    let seconds = |dice: &mut StdRng| Duration::from_secs(dice.random_range(1..6));
    link.set(match dice.random_range(0..8) {
        0 | 1 => Condition::GOOD,
        2 | 3 => Condition::HELD,
        4 => Condition::slow(seconds(dice)),
        5 => Condition::GOOD.lossy(0.3),
        6 => Condition::slow(seconds(dice)).lossy(0.2),
        _ => return,
    });
}

/// How long the network stays as it is.
fn spell(dice: &mut impl Rng) -> Duration {
    Duration::from_millis(dice.random_range(200..9000))
}
