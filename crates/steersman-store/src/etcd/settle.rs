//! What became of a write that etcd did not answer, where that can be known.
//!
//! A write that expects a revision of its key happens at most once, however often it is sent,
//! and not at all once another change came first. So it can be sent again, and if another change
//! came first, which one says: a change to something else was not ours. One to the very same may
//! have been anybody's, so that remains unknown; as does every write without such an expectation,
//! which may still be on its way when it is looked for.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::Core;
use super::error::Failure;
use super::wire::TxnResponse;
use crate::{Event, Expected, Revision, StoreError, WatchRequest, WriteRequest};

/// With less time left, nothing more can be learned.
const LEAST: Duration = Duration::from_millis(50);

impl Core {
    /// The answer to a write that was lost, or whatever is known of it.
    pub(super) async fn settle(
        &self,
        key: &Bytes,
        request: &WriteRequest,
        reason: String,
        deadline: Instant,
    ) -> Result<TxnResponse, StoreError> {
        let unknown = StoreError::Unknown { reason };
        let Expected::Modified(base) = request.expected else { return Err(unknown) };
        while Instant::now() + LEAST < deadline {
            match self.attempt(key, request, false, deadline).await {
                Ok(answer) if answer.succeeded => {
                    tracing::debug!(key = %request.key, "retried an etcd write whose answer was lost");
                    return Ok(answer);
                }
                Ok(answer) => match self.change_after(request, base, deadline).await {
                    Some(event) if is_not_ours(&event, request) => return Ok(answer),
                    _ => break,
                },
                Err(Failure::Lost(_)) => {}
                Err(_) => break,
            }
        }
        Err(unknown)
    }

    /// The first change of a key after a revision, if it is still known.
    async fn change_after(
        &self,
        request: &WriteRequest,
        base: Revision,
        deadline: Instant,
    ) -> Option<Event> {
        let prefix = request.key.to_string();
        let found = async {
            // The feed may hang on the connection that the answer was lost on.
            self.refresh().await.ok()?;
            let mut watch = self.index.watch(WatchRequest { prefix, after: base }).ok()?;
            loop {
                let batch = watch.next().await.ok()?;
                if let Some(event) = batch.iter().find(|event| event.key == request.key) {
                    return Some(Event::clone(event));
                }
            }
        };
        tokio::time::timeout_at(deadline, found).await.ok()?
    }
}

/// Whether a change leaves the key otherwise than the request would.
fn is_not_ours(event: &Event, request: &WriteRequest) -> bool {
    event.current.as_ref().map(|entry| &entry.value) != request.value.as_ref()
}
