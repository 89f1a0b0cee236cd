//! What does not stay, and what always does: history goes after a while, Events an hour after
//! they were last written, and what every cluster has comes back when it is deleted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use steersman_store::{Expected, RangeRequest, Revision, WriteRequest};
use tokio::time::Instant;

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

/// How many changes are kept at most, however young they are: as many as Kubernetes' watch cache
/// has room for. Each holds an object, so a busy hour must not decide how much memory that takes.
const HISTORY_MAX: u64 = 100 * 1024;

/// How often the changes are counted.
const HISTORY_PERIOD: Duration = Duration::from_secs(5);

impl ApiServer {
    /// Keeps `history` of the past, but no more changes than there is room for, and forgets what
    /// is older, until dropped. Kubernetes keeps five minutes.
    pub async fn run_compaction(&self, history: Duration) {
        let server = Arc::clone(self.server());
        let mut before: Option<Revision> = None;
        loop {
            let due = Instant::now() + history;
            while Instant::now() < due {
                tokio::time::sleep_until(due.min(Instant::now() + HISTORY_PERIOD)).await;
                keep_at_most(&server, HISTORY_MAX).await;
            }
            if let Some(revision) = before {
                compact(&server, revision).await;
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

/// Forgets all changes but the last so many. Every write is one revision.
async fn keep_at_most(server: &Server, changes: u64) {
    if let Ok(Revision(now)) = list::current(server).await
        && let Some(oldest) = now.checked_sub(changes)
    {
        compact(server, Revision(oldest)).await;
    }
}

async fn compact(server: &Server, revision: Revision) {
    if let Err(error) = server.store.compact(revision).await {
        tracing::warn!(%error, "compaction failed");
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
        let request = WriteRequest::delete(Arc::clone(&entry.key), expected);
        // An event that was written just now is seen again, and stays.
        let _ = server.store.write(request).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Past, keep_at_most};
    use crate::{ApiServer, Config};
    use jiff::{SignedDuration, Timestamp};
    use steersman_store::memory::MemoryStore;
    use steersman_store::{Expected, Revision, Store, WriteRequest};

    #[tokio::test]
    async fn no_more_changes_are_kept_than_there_is_room_for() {
        let store = MemoryStore::new();
        let clock = Arc::new(|| Timestamp::UNIX_EPOCH);
        let api = ApiServer::start(Config::new(Arc::new(store.clone()), clock)).await.unwrap();
        for _ in 0..50 {
            store.write(WriteRequest::put("/registry/a", "value", Expected::Any)).await.unwrap();
        }
        keep_at_most(api.server(), 20).await;
        assert_eq!(store.stats().history, 20);
        keep_at_most(api.server(), 1_000_000).await;
        assert_eq!(store.stats().history, 20);
    }

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
