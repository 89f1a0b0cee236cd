//! What does not stay, and what always does: history goes after a while, and what every cluster
//! has comes back when it is deleted. Events go by themselves, an hour after they were written.

use std::sync::Arc;
use std::time::Duration;

use steersman_store::Revision;
use tokio::time::Instant;

use crate::read::list;
use crate::server::ApiServer;
use crate::state::Server;
use crate::status::Result;
use crate::{bootstrap, fairness, flow_control, lookup};

/// How long after a change it is checked that everything is there that every cluster has, and how
/// often a server that listens says that it lives.
const BOOTSTRAP_PERIOD: Duration = Duration::from_secs(10);

/// How many changes are kept at most, however young they are: as many as Kubernetes' watch cache
/// has room for. Each holds an object, so a busy hour must not decide how much memory that takes.
const HISTORY_MAX: u64 = 100 * 1024;

/// How long after a change the changes are counted.
const HISTORY_PERIOD: Duration = Duration::from_secs(5);

impl ApiServer {
    /// Keeps `history` of the past, but no more changes than there is room for, and forgets what
    /// is older, until dropped. Kubernetes keeps five minutes. Rests while there is nothing left
    /// to forget.
    pub async fn run_compaction(&self, history: Duration) {
        let server = Arc::clone(self.server());
        let mut before: Option<Revision> = None;
        loop {
            count_until(&server, Instant::now() + history).await;
            if let Some(revision) = before {
                compact(&server, revision).await;
            }
            let now = list::current(&server, true).await.ok();
            if let Some(now) = now.filter(|now| before == Some(*now)) {
                lookup::moved_past(&*server.store, &[""], now).await;
            }
            before = now;
        }
    }

    /// Keeps what every cluster has: the system's namespaces, the service `kubernetes` and its
    /// endpoints, the system's priority classes, priority levels and flow schemas, until dropped. Rests while nothing of that
    /// kind changes, unless others need to hear that this server lives.
    pub async fn run_bootstrap(&self) {
        let server = Arc::clone(self.server());
        let mut folders = bootstrap::folders(&server);
        folders.extend(fairness::folders());
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        loop {
            let seen = list::current(&server, true).await.unwrap_or_default();
            let kept = keep(&server).await;
            if let Err(error) = &kept {
                tracing::warn!(%error, "cannot write system objects");
            }
            let due = async {
                if kept.is_ok() && server.reachable().is_none() {
                    lookup::moved_past(&*server.store, &folders, seen).await;
                }
                tokio::time::sleep(BOOTSTRAP_PERIOD).await;
            };
            tokio::select! {
                () = due => {}
                () = server.advertised.notified() => {}
            }
        }
    }
}

/// Makes and mends what every cluster has.
async fn keep(server: &Arc<Server>) -> Result<()> {
    bootstrap::run(server).await?;
    flow_control::reconcile(server).await
}

/// Sees to it until then that there are not too many changes.
async fn count_until(server: &Server, due: Instant) {
    let mut seen = Revision(0);
    loop {
        let changed = async {
            lookup::moved_past(&*server.store, &[""], seen).await;
            tokio::time::sleep(HISTORY_PERIOD).await;
        };
        if tokio::time::timeout_at(due, changed).await.is_err() {
            return;
        }
        seen = list::current(server, true).await.unwrap_or(seen);
        keep_at_most(server, HISTORY_MAX).await;
    }
}

/// Forgets all changes but the last so many. Every write is one revision.
async fn keep_at_most(server: &Server, changes: u64) {
    if let Ok(Revision(now)) = list::current(server, true).await
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::keep_at_most;
    use crate::{ApiServer, Config};
    use jiff::Timestamp;
    use steersman_store::memory::MemoryStore;
    use steersman_store::{Expected, Store, WriteRequest};

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
}
