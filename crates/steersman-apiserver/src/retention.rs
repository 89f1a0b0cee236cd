//! What does not stay, and what always does: history goes after a while, Events an hour after
//! they were last written, and what every cluster has comes back when it is deleted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use steersman_store::{Expected, RangeRequest, Revision, WriteRequest};

use crate::bootstrap;
use crate::read::list;
use crate::server::ApiServer;
use crate::state::Server;

/// How long an Event stays after it was last written.
const EVENT_TTL: Duration = Duration::from_secs(3600);

/// How often old Events are looked for.
const EVENT_PERIOD: Duration = Duration::from_secs(60);

/// How often it is checked that everything is there that every cluster has.
const BOOTSTRAP_PERIOD: Duration = Duration::from_secs(10);

impl ApiServer {
    /// Keeps `history` of the past and forgets what is older, until dropped. Kubernetes keeps
    /// five minutes.
    pub async fn run_compaction(&self, history: Duration) {
        let server = Arc::clone(self.server());
        let mut before: Option<Revision> = None;
        loop {
            tokio::time::sleep(history).await;
            if let Some(revision) = before
                && let Err(error) = server.store.compact(revision).await
            {
                tracing::warn!(%error, "compaction failed");
            }
            before = list::current(&server).await.ok();
        }
    }

    /// Removes Events that nobody has written for an hour, until dropped.
    pub async fn run_event_expiry(&self) {
        let server = Arc::clone(self.server());
        let mut past = Past::default();
        loop {
            if let Ok(revision) = list::current(&server).await {
                past.remember((server.clock)(), revision);
            }
            tokio::time::sleep(EVENT_PERIOD).await;
            if let Some(revision) = past.an_hour_before((server.clock)()) {
                expire_events(&server, revision).await;
            }
        }
    }

    /// Keeps what every cluster has: the system's namespaces, the service `kubernetes` and its
    /// endpoints, and the system's priority classes, until dropped.
    pub async fn run_bootstrap(&self) {
        let server = Arc::clone(self.server());
        loop {
            if let Err(error) = bootstrap::run(&server).await {
                tracing::warn!(%error, "cannot keep what every cluster has");
            }
            tokio::time::sleep(BOOTSTRAP_PERIOD).await;
        }
    }
}

/// Which revision was the latest at which time, as far back as an Event lives.
#[derive(Debug, Default)]
struct Past(VecDeque<(Timestamp, Revision)>);

impl Past {
    fn remember(&mut self, now: Timestamp, revision: Revision) {
        self.0.push_back((now, revision));
    }

    /// The latest revision that is an hour old; what is older still is forgotten.
    fn an_hour_before(&mut self, now: Timestamp) -> Option<Revision> {
        let ttl = SignedDuration::try_from(EVENT_TTL).unwrap_or(SignedDuration::ZERO);
        let is_old = |time: Timestamp| time + ttl <= now;
        while self.0.get(1).is_some_and(|(time, _)| is_old(*time)) {
            self.0.pop_front();
        }
        self.0.front().filter(|(time, _)| is_old(*time)).map(|(_, revision)| *revision)
    }
}

/// Removes the Events that were last written at this revision or before.
async fn expire_events(server: &Server, revision: Revision) {
    let request =
        RangeRequest { prefix: "/registry/events/".to_owned(), ..RangeRequest::default() };
    let Ok(events) = server.store.range(request).await else { return };
    for entry in events.entries.iter().filter(|entry| entry.modified <= revision) {
        let expected = Expected::Modified(entry.modified);
        let request = WriteRequest { key: Arc::clone(&entry.key), value: None, expected };
        // An event that was written just now is seen again, and stays.
        let _ = server.store.write(request).await;
    }
}

#[cfg(test)]
mod tests {
    use super::Past;
    use jiff::{SignedDuration, Timestamp};
    use steersman_store::Revision;

    #[test]
    fn the_past_knows_which_revision_is_an_hour_old_and_forgets_what_is_older() {
        let start: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        let minute = |n: i64| start + SignedDuration::from_mins(n);
        let mut past = Past::default();
        for n in 0..60 {
            past.remember(minute(n), Revision(u64::try_from(n).unwrap() + 1));
            assert_eq!(past.an_hour_before(minute(n)), None);
        }
        assert_eq!(past.an_hour_before(minute(60)), Some(Revision(1)));
        assert_eq!(past.an_hour_before(minute(75)), Some(Revision(16)));
        assert_eq!(past.0.len(), 45);
    }
}
