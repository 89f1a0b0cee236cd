//! Leases: how keys go after a while in etcd.
//!
//! A lease costs etcd more than a key, so keys that are to stay for the same time share one, if
//! they are written within a short window: the lease lasts that much longer. These are the limits
//! of Kubernetes' `lease_manager.go`, with a window of a second at least.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::client::{Client, GRANT};
use super::error::Failure;
use super::wire::{LeaseGrantRequest, LeaseGrantResponse};

/// How many keys share a lease at most.
const KEYS_MAX: usize = 1000;
/// For which part of its time a lease takes more keys.
const WINDOW_PART: u64 = 20;
/// The window in seconds, at least and at most.
const WINDOW: (u64, u64) = (1, 60);

/// The lease that takes keys at the moment, for each time in seconds.
#[derive(Default)]
pub(super) struct Leases(Mutex<HashMap<u64, Lease>>);

#[derive(Clone, Copy, Debug)]
struct Lease {
    id: i64,
    /// When it takes no more keys: their time would be cut short.
    closes: Instant,
    keys: usize,
}

impl Leases {
    /// A lease that lasts so long from now, and hardly longer.
    pub(super) async fn get(
        &self,
        client: &Client,
        ttl: Duration,
        deadline: Instant,
    ) -> Result<i64, Failure> {
        let seconds = seconds(ttl);
        // Held while one is granted: whoever wants the same waits for it anyway.
        let mut leases = self.0.lock().await;
        let now = Instant::now();
        leases.retain(|_, lease| now < lease.closes && lease.keys < KEYS_MAX);
        if let Some(lease) = leases.get_mut(&seconds) {
            lease.keys += 1;
            return Ok(lease.id);
        }
        let window = window(seconds);
        let ttl = i64::try_from(seconds + window).unwrap_or(i64::MAX);
        let granted: LeaseGrantResponse =
            client.call(GRANT, &LeaseGrantRequest { ttl }, deadline).await?;
        // Its time began when etcd granted it, after we asked.
        let closes = now + Duration::from_secs(window);
        leases.insert(seconds, Lease { id: granted.id, closes, keys: 1 });
        Ok(granted.id)
    }

    /// Forgets a lease that etcd does not know.
    pub(super) async fn forget(&self, id: i64) {
        self.0.lock().await.retain(|_, lease| lease.id != id);
    }
}

/// Full seconds, rounded up: a key goes no earlier than it should.
fn seconds(ttl: Duration) -> u64 {
    (ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)).clamp(1, u64::from(u32::MAX))
}

fn window(seconds: u64) -> u64 {
    (seconds / WINDOW_PART).clamp(WINDOW.0, WINDOW.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_twentieth_of_the_time_within_limits() {
        assert_eq!([1, 20, 60, 1200, 3600].map(window), [1, 1, 3, 60, 60]);
    }

    #[test]
    fn times_are_rounded_up_to_seconds() {
        let of = |millis| seconds(Duration::from_millis(millis));
        assert_eq!([of(0), of(1), of(1000), of(1001)], [1, 1, 1, 2]);
    }
}
