//! How far the index has come, for those who wait for a revision.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use crate::{Revision, StoreError};

/// If the index does not move for this long while somebody waits for it, the feed's connection
/// is no longer trusted.
pub(super) const STALL: Duration = Duration::from_millis(1500);

/// Where the index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// How often it has started over.
    pub(super) epoch: u64,
    /// The cluster whose history it follows.
    pub(super) cluster: u64,
    /// The last revision that it has heard of.
    pub(super) revision: Revision,
}

/// Where etcd is: the answer to a question that was asked in an epoch.
pub(super) type Head = Position;

/// Published by the feed.
pub(super) struct Progress {
    position: watch::Sender<Position>,
    /// The highest revision of any answer. The index may not have heard of it yet.
    known: AtomicU64,
    /// Somebody waits in vain.
    suspect: Notify,
}

impl Progress {
    pub(super) fn new(cluster: u64, revision: Revision) -> Self {
        let position = watch::channel(Position { epoch: 0, cluster, revision }).0;
        Self { position, known: AtomicU64::new(revision.0), suspect: Notify::new() }
    }

    pub(super) fn position(&self) -> Position {
        *self.position.borrow()
    }

    /// The index has heard of everything up to this revision.
    pub(super) fn advance(&self, revision: Revision) {
        self.note(revision);
        self.position.send_modify(|position| position.revision = revision);
    }

    /// The index was replaced.
    pub(super) fn start_over(&self, cluster: u64, revision: Revision) {
        self.known.store(revision.0, Ordering::Relaxed);
        self.position.send_modify(|position| {
            *position = Position { epoch: position.epoch + 1, cluster, revision };
        });
    }

    /// etcd has answered with this revision, so it exists.
    pub(super) fn note(&self, revision: Revision) {
        self.known.fetch_max(revision.0, Ordering::Relaxed);
    }

    /// The highest revision that etcd has answered with.
    pub(super) fn known(&self) -> Revision {
        Revision(self.known.load(Ordering::Relaxed))
    }

    /// Waits until the index has come as far as etcd was. False if it has started over since: then
    /// the answer says nothing.
    pub(super) async fn reach(&self, head: Head, deadline: Instant) -> Result<bool, StoreError> {
        let mut position = self.position.subscribe();
        loop {
            let now = *position.borrow_and_update();
            if now.epoch != head.epoch {
                return Ok(false);
            }
            let same = now.cluster == head.cluster;
            if same && now.revision >= head.revision {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Err(late(now, head));
            }
            let stall = if same { STALL } else { Duration::from_millis(50) };
            let until = deadline.min(Instant::now() + stall);
            if timeout_at(until, position.changed()).await.is_err() {
                self.suspect.notify_one();
            }
        }
    }

    /// Waits until somebody has waited in vain.
    pub(super) async fn suspected(&self) {
        self.suspect.notified().await;
    }
}

fn late(position: Position, head: Head) -> StoreError {
    let heard = position.revision;
    let there = head.revision;
    let reason = format!("etcd is at revision {there}, but its watch has only told of {heard}");
    StoreError::Unavailable { reason }
}
