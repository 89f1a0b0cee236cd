//! When a connection is of no use: its client holds a place for which others wait, and asks nothing.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// So long a connection stays on which nothing is asked, and so long its client may take to read the last
/// answer. The API server ends those that it does not use after a minute and a half, so that what it asks
/// never meets a connection that ends here.
pub(super) const IDLE: Duration = Duration::from_secs(120);

/// What is asked on a connection.
pub(super) struct Activity(watch::Sender<Usage>);

#[derive(Clone, Copy)]
struct Usage {
    /// Requests that have no answer yet.
    under_way: usize,
    /// When the connection began, or the last request was answered.
    since: Instant,
}

/// A request that is under way until this is dropped.
pub(super) struct UnderWay(watch::Sender<Usage>);

impl Activity {
    /// Of a connection that begins now.
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(Usage { under_way: 0, since: Instant::now() }))
    }

    /// A request has come.
    pub(super) fn begin(&self) -> UnderWay {
        self.0.send_modify(|usage| usage.under_way += 1);
        UnderWay(self.0.clone())
    }

    /// Ready when nothing has been asked for too long.
    pub(super) async fn idle(&self) {
        let mut usage = self.0.subscribe();
        loop {
            let Usage { under_way, since } = *usage.borrow_and_update();
            tokio::select! {
                biased;
                _ = usage.changed() => {} // we hold the sender
                () = tokio::time::sleep_until(since + IDLE), if under_way == 0 => return,
            }
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|usage| {
            usage.under_way -= 1;
            usage.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_its_last_answer_was_given_long_ago() {
        let activity = Activity::new();
        let mut idle = pin!(activity.idle());
        let (first, second) = (activity.begin(), activity.begin());
        tokio::time::advance(2 * IDLE).await;
        drop(first);
        tokio::time::advance(2 * IDLE).await;
        assert!(idle.as_mut().now_or_never().is_none(), "one is under way");
        drop(second);
        tokio::time::advance(IDLE - Duration::from_secs(1)).await;
        assert!(idle.as_mut().now_or_never().is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(idle.as_mut().now_or_never().is_some());
    }
}
