//! A watch on the store in memory: a position in the log, and the will to wait for more.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::watch::Receiver;

use super::Shared;
use crate::{Event, Revision, StoreError, Watch, WatchRequest};

/// A reader's position in the log.
pub(super) struct Cursor {
    shared: Arc<Shared>,
    prefix: String,
    /// Every matching change up to here has been returned. It moves only in the step that
    /// returns the changes, which makes `next` cancel-safe.
    position: Revision,
    /// Wakes when the store's revision moves.
    revision: Receiver<Revision>,
}

impl Cursor {
    pub(super) fn new(shared: Arc<Shared>, request: WatchRequest) -> Self {
        let revision = shared.revision.subscribe();
        Self { shared, prefix: request.prefix, position: request.after, revision }
    }

    async fn wait_for_changes(&mut self) -> Result<Vec<Arc<Event>>, StoreError> {
        loop {
            // Seen before looking: a write that comes after the look wakes us.
            self.revision.mark_unchanged();
            let scan = self.shared.read().scan(self.position, &self.prefix)?;
            self.position = scan.scanned;
            if !scan.events.is_empty() {
                return Ok(scan.events);
            }
            if scan.more {
                tokio::task::yield_now().await;
            } else {
                self.revision.changed().await.expect("this cursor keeps the sender alive");
            }
        }
    }
}

impl Watch for Cursor {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        self.wait_for_changes().boxed()
    }

    fn delivered(&mut self) -> Revision {
        self.position = self.shared.read().unchanged_until(self.position, &self.prefix);
        self.position
    }
}
