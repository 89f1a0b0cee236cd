//! How fast failed Pods of a DaemonSet are replaced: at once the first time on a node, then after a
//! second, two, four, up to fifteen minutes. What has been quiet for twice as long begins anew.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// When failed Pods were last replaced. Forgets what is over, so it holds no more than the nodes
/// on which Pods failed within half an hour.
#[derive(Default)]
pub(super) struct Backoff {
    entries: Mutex<HashMap<String, Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    delay: Duration,
    since: Timestamp,
}

impl Entry {
    fn age(self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.since)).unwrap_or(Duration::ZERO)
    }

    fn is_over(self, now: Timestamp) -> bool {
        self.age(now) > 2 * LONGEST
    }
}

impl Backoff {
    /// Asks to replace a failed Pod. If it is too early, gives the time to wait.
    pub(super) fn ask(&self, key: &str, now: Timestamp) -> Result<(), Duration> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, entry| !entry.is_over(now));
        let delay = match entries.get(key) {
            Some(entry) if entry.age(now) < entry.delay => return Err(entry.delay),
            Some(entry) => (2 * entry.delay).min(LONGEST),
            None => FIRST,
        };
        entries.insert(key.to_owned(), Entry { delay, since: now });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_on_a_node_waits_twice_as_long_as_the_one_before() {
        let backoff = Backoff::default();
        let start: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(backoff.ask("a", at(0)), Ok(()));
        assert_eq!(backoff.ask("a", at(0)), Err(FIRST));
        assert_eq!(backoff.ask("b", at(0)), Ok(()));
        assert_eq!(backoff.ask("a", at(1)), Ok(()));
        assert_eq!(backoff.ask("a", at(2)), Err(Duration::from_secs(2)));
        assert_eq!(backoff.ask("a", at(3)), Ok(()));
        assert_eq!(backoff.ask("a", at(3 + 1801)), Ok(()));
        assert_eq!(backoff.ask("a", at(3 + 1801)), Err(FIRST), "it has been quiet for long");
    }
}
