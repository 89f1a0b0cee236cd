//! How many containers the runtime is asked to start at once.
//!
//! To start one is work for processors: with fifty at once on two of them all are started at the end,
//! and each call of each waits for all the others. In turns, the first run soon and the last no later.
//! Who holds a turn for long most likely waits for something else, such as a network's plug-in, and
//! others go on.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// How many are started at once for each processor.
const PER_PROCESSOR: usize = 3;

/// How long a start keeps others waiting at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// The turns of those who start containers.
pub(super) struct Turns(Arc<Semaphore>);

/// Somebody's turn, while this is held and patience lasts.
pub(super) struct Turn(Option<JoinHandle<()>>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(held) = &self.0 {
            held.abort();
        }
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::of(PER_PROCESSOR * available_parallelism().map_or(1, usize::from))
    }
}

impl Turns {
    fn of(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Waits for one's turn: who came first is first.
    pub(super) async fn take(&self) -> Turn {
        let Ok(place) = Arc::clone(&self.0).acquire_owned().await else { return Turn(None) };
        Turn(Some(tokio::spawn(async move {
            sleep(PATIENCE).await;
            drop(place);
        })))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::{Instant, advance};

    use super::{PATIENCE, Turns};

    #[tokio::test(start_paused = true)]
    async fn only_so_many_start_at_once() {
        let turns = Turns::of(2);
        let first = turns.take().await;
        let _second = turns.take().await;
        assert!(turns.take().now_or_never().is_none());
        let begun = Instant::now();
        drop(first);
        let _third = turns.take().await;
        assert!(begun.elapsed() < PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_long_for_a_runtime_that_does_not_answer() {
        let turns = Turns::of(1);
        let _stuck = turns.take().await;
        tokio::task::yield_now().await;
        advance(PATIENCE).await;
        turns.take().await;
    }
}
