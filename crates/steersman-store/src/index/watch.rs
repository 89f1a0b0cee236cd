//! A watch: a position in the log, and the will to wait for more.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::watch::Receiver;

use super::Index;
use super::state::Scan;
use super::topics::Topic;
use crate::{Event, Revision, StoreError, Watch, WatchRequest};

/// A reader's position in the log.
pub(super) struct Cursor {
    index: Arc<Index>,
    prefix: String,
    /// Every matching change up to here has been returned. It moves only in the step that
    /// returns the changes, which makes `next` cancel-safe.
    position: Revision,
    /// Which of the states that followed each other the position belongs to.
    epoch: u64,
    /// The folder that the prefix lies in.
    topic: Arc<Topic>,
    /// Wakes when something changes there.
    changes: Receiver<()>,
}

impl Cursor {
    pub(super) fn new(index: Arc<Index>, request: WatchRequest) -> Result<Self, StoreError> {
        let WatchRequest { prefix, after } = request;
        let mut state = index.write();
        let (topic, changes) = state.watch(&prefix, after)?;
        let epoch = state.epoch();
        drop(state);
        Ok(Self { index, prefix, position: after, epoch, topic, changes })
    }

    fn look(&self) -> Result<Scan, StoreError> {
        let state = self.index.read();
        if state.epoch() != self.epoch {
            let requested = self.position;
            let oldest = state.stats().oldest;
            return Err(StoreError::Compacted { requested, oldest });
        }
        state.scan(self.position, &self.prefix, &self.topic)
    }

    async fn wait_for_changes(&mut self) -> Result<Vec<Arc<Event>>, StoreError> {
        loop {
            // Seen before looking: a write that comes after the look wakes us.
            self.changes.mark_unchanged();
            let scan = self.look()?;
            self.position = scan.scanned;
            if !scan.events.is_empty() {
                let restored = |event| self.index.compact.restored_event(event);
                return Ok(scan.events.into_iter().map(restored).collect());
            }
            if scan.more {
                tokio::task::yield_now().await;
            } else {
                self.changes.changed().await.expect("this cursor keeps the sender alive");
            }
        }
    }
}

impl Watch for Cursor {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        self.wait_for_changes().boxed()
    }

    fn delivered(&mut self) -> Revision {
        let state = self.index.read();
        if state.epoch() == self.epoch {
            self.position = state.unchanged_until(self.position, &self.prefix, &self.topic);
        }
        self.position
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.index.write().unwatch(&self.topic);
    }
}
