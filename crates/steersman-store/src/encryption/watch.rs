//! A watch of a store whose values are encrypted.
//!
//! What history holds may be older than the keys that are known today. Whoever watches is told then
//! that history has passed them by, and reads the state instead, where an object that nobody can
//! read is named.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use super::Encryption;
use crate::{Event, Revision, StoreError, Watch};

/// A watch that decrypts.
pub(super) struct Opening {
    inner: Box<dyn Watch>,
    encryption: Arc<Encryption>,
    /// Once a change cannot be decrypted: the error that `next` ends with.
    ended: Option<StoreError>,
}

impl Opening {
    pub(super) fn new(inner: Box<dyn Watch>, encryption: Arc<Encryption>) -> Self {
        Self { inner, encryption, ended: None }
    }

    /// Nothing is awaited in here: `next` stays cancel-safe.
    fn open_all(&mut self, mut events: Vec<Arc<Event>>) -> Result<Vec<Arc<Event>>, StoreError> {
        let opened = events.iter_mut().position(|event| self.open(event).is_err());
        let Some(failed) = opened else { return Ok(events) };
        let revision = events[failed].revision;
        // Those of one revision are told together or not at all.
        events.retain(|event| event.revision < revision);
        let requested = Revision(revision.0.saturating_sub(1));
        let ended = StoreError::Compacted { requested, oldest: revision };
        self.ended = Some(ended.clone());
        if events.is_empty() { Err(ended) } else { Ok(events) }
    }

    fn open(&self, event: &mut Arc<Event>) -> Result<(), StoreError> {
        // What all watches share stays shared.
        if event.current.iter().chain(&event.previous).all(|entry| self.encryption.leaves(entry)) {
            return Ok(());
        }
        let Event { current, previous, .. } = Arc::make_mut(event);
        current.iter_mut().chain(previous).try_for_each(|entry| self.encryption.open(entry))
    }
}

impl Watch for Opening {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        async move {
            if let Some(ended) = &self.ended {
                return Err(ended.clone());
            }
            let events = self.inner.next().await?;
            self.open_all(events)
        }
        .boxed()
    }

    fn delivered(&mut self) -> Revision {
        match &self.ended {
            Some(StoreError::Compacted { requested, .. }) => *requested,
            _ => self.inner.delivered(),
        }
    }
}
