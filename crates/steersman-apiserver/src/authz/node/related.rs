//! Relations as far as the store has them: read once somebody asks, and brought up to date whenever
//! somebody asks again.

use std::sync::{PoisonError, RwLock};

use steersman_store::{RangeRequest, Revision, Store, StoreError, Watch, WatchRequest};
use tokio::sync::Mutex;

use super::object::{Kind, Object};
use super::relations::Relations;
use crate::lookup;

/// The kinds that relate something to a node.
const FOLLOWED: [Kind; 4] = [Kind::Pod, Kind::Volume, Kind::Attachment, Kind::Slice];

/// How many objects are read before others get a turn.
const TURN: usize = 256;

/// What is related to which node, in a store.
#[derive(Default)]
pub(super) struct Related {
    /// The lock is held for moments, never over a wait.
    relations: RwLock<Relations>,
    /// How far the relations are; none before the first question. Whoever holds it may write the
    /// relations.
    cursors: Mutex<Option<Cursors>>,
}

/// How far the relations are.
struct Cursors {
    /// The revision that they were last brought up to.
    at: Revision,
    watches: Vec<(Kind, Box<dyn Watch>)>,
}

impl Related {
    /// Whether an object is related to a node, as of the last time that they were brought up to date.
    pub(super) fn is_related(&self, node: &str, object: Object<'_>) -> bool {
        let relations = self.relations.read().unwrap_or_else(PoisonError::into_inner);
        relations.is_related(node, object)
    }

    /// Takes in what was written before, as far as this server has heard if that is enough.
    pub(super) async fn catch_up(&self, store: &dyn Store, stale: bool) -> Result<(), StoreError> {
        let mut cursors = self.cursors.lock().await;
        let now = lookup::revision(store, stale).await?;
        // A store that is behind has another history since. Whatever ends this before its end leaves
        // nothing behind that others would go on from.
        if let Some(mut known) = cursors.take().filter(|known| known.at <= now) {
            match self.follow(&mut known, now).await {
                Ok(()) => {
                    *cursors = Some(known);
                    return Ok(());
                }
                Err(StoreError::Compacted { .. }) => {}
                Err(error) => tracing::warn!(%error, "watch of what nodes need failed, relisting"),
            }
        }
        *cursors = Some(self.load(store).await?);
        Ok(())
    }

    /// Follows history up to a revision.
    async fn follow(&self, cursors: &mut Cursors, until: Revision) -> Result<(), StoreError> {
        for (kind, watch) in &mut cursors.watches {
            while watch.delivered() < until {
                let events = watch.next().await?;
                let mut relations = self.relations.write().unwrap_or_else(PoisonError::into_inner);
                for event in events {
                    let document = event.current.as_ref().map(|entry| &entry.value[..]);
                    relations.take_in(*kind, &event.key, document);
                }
            }
        }
        cursors.at = until;
        Ok(())
    }

    /// Reads everything.
    async fn load(&self, store: &dyn Store) -> Result<Cursors, StoreError> {
        let mut relations = Relations::default();
        let mut at = None;
        for kind in FOLLOWED {
            let prefix = kind.folder().to_owned();
            let state = store.range(RangeRequest { prefix, at, ..RangeRequest::default() }).await?;
            at = Some(state.revision);
            for some in state.entries.chunks(TURN) {
                for entry in some {
                    relations.take_in(kind, &entry.key, Some(&entry.value));
                }
                tokio::task::yield_now().await;
            }
        }
        let at = at.unwrap_or_default();
        let mut watches = Vec::new();
        for kind in FOLLOWED {
            let prefix = kind.folder().to_owned();
            watches.push((kind, store.watch(WatchRequest { prefix, after: at }).await?));
        }
        *self.relations.write().unwrap_or_else(PoisonError::into_inner) = relations;
        Ok(Cursors { at, watches })
    }
}

impl std::fmt::Debug for Related {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Related").finish_non_exhaustive()
    }
}
