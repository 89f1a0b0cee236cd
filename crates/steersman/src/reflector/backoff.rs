//! How long to wait between failures: longer each time, and from the start after a good while.

use std::time::Duration;

use tokio::time::Instant;

use crate::random;

const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);
const RESET_AFTER: Duration = Duration::from_secs(120);

/// The back-off of one reflector; others are not slowed by it.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    last_failure: Option<Instant>,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: FIRST, last_failure: None }
    }

    /// Notes a failure and gives the time to wait.
    pub(super) fn failed(&mut self) -> Duration {
        let now = Instant::now();
        if self.last_failure.is_some_and(|last| now - last > RESET_AFTER) {
            self.next = FIRST;
        }
        self.last_failure = Some(now);
        let delay = self.next;
        self.next = (self.next * 2).min(LONGEST);
        random::jitter(delay, 0.5)
    }

    /// Whether the last failure was the first after things went well.
    pub(super) fn failed_once(&self) -> bool {
        self.next <= FIRST * 2
    }

    /// Notes that the server answers again.
    pub(super) fn succeeded(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_to_a_limit_and_start_over_after_success() {
        let mut backoff = Backoff::new();
        let first = backoff.failed();
        assert!(first >= FIRST && first < FIRST * 2 && backoff.failed_once());
        for _ in 0..20 {
            assert!(backoff.failed() <= LONGEST.mul_f64(1.5));
        }
        assert!(backoff.failed() >= LONGEST && !backoff.failed_once());
        backoff.succeeded();
        assert!(backoff.failed() < FIRST * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_quiet_time_starts_over() {
        let mut backoff = Backoff::new();
        for _ in 0..10 {
            backoff.failed();
        }
        tokio::time::advance(RESET_AFTER * 2).await;
        assert!(backoff.failed() < FIRST * 2);
    }
}
