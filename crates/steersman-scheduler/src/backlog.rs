//! The Pods that fit nowhere at the moment, and how long each waits for its next try.

use std::collections::BTreeMap;
use std::time::Duration;

use steersman::ObjectKey;

/// The first and the longest wait.
const WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Which Pods wait, and how often each was tried.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    tries: BTreeMap<ObjectKey, u32>,
}

impl Backlog {
    /// Notes that a Pod fits nowhere; returns how long it waits.
    pub(crate) fn add(&mut self, key: &ObjectKey) -> Duration {
        let tries = self.tries.entry(key.clone()).or_insert(0);
        let wait = WAIT.0.saturating_mul(2_u32.saturating_pow(*tries)).min(WAIT.1);
        *tries = tries.saturating_add(1);
        wait
    }

    /// Notes that a Pod has found its place, or needs none.
    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.tries.remove(key);
    }

    /// Who waits.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.tries.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_one_second_to_ten() {
        let mut backlog = Backlog::default();
        let key = ObjectKey::from("default/p");
        let waits: Vec<u64> = (0..6).map(|_| backlog.add(&key).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        backlog.remove(&key);
        assert!(backlog.keys().is_empty());
    }
}
