//! What does not stay: history, and Events an hour after they were last seen.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use steersman_store::{Entry, Expected, RangeRequest, Revision, WriteRequest};

use crate::read::list;
use crate::server::ApiServer;
use crate::state::Server;

/// How long an Event stays after its last change.
const EVENT_TTL: Duration = Duration::from_secs(3600);

/// How often old Events are looked for.
const EVENT_PERIOD: Duration = Duration::from_secs(60);

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

    /// Removes Events that nobody has seen for an hour, until dropped.
    pub async fn run_event_expiry(&self) {
        let server = Arc::clone(self.server());
        loop {
            tokio::time::sleep(EVENT_PERIOD).await;
            expire_events(&server).await;
        }
    }
}

async fn expire_events(server: &Server) {
    let request =
        RangeRequest { prefix: "/registry/events/".to_owned(), ..RangeRequest::default() };
    let Ok(events) = server.store.range(request).await else { return };
    let ttl = SignedDuration::try_from(EVENT_TTL).unwrap_or(SignedDuration::ZERO);
    let oldest = (server.clock)() - ttl;
    for entry in events.entries.iter().filter(|entry| last_seen(entry) < Some(oldest)) {
        let expected = Expected::Modified(entry.modified);
        let request = WriteRequest { key: Arc::clone(&entry.key), value: None, expected };
        // An event that was written just now is seen again, and stays.
        let _ = server.store.write(request).await;
    }
}

/// The latest time that an event mentions.
fn last_seen(entry: &Entry) -> Option<Timestamp> {
    let event: serde_json::Value = serde_json::from_slice(&entry.value).ok()?;
    let times = [
        &event["metadata"]["creationTimestamp"],
        &event["lastTimestamp"],
        &event["deprecatedLastTimestamp"],
        &event["eventTime"],
        &event["series"]["lastObservedTime"],
    ];
    times.iter().filter_map(|time| time.as_str()?.parse().ok()).max()
}
