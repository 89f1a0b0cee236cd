//! The write itself, and what follows from it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use steersman_rules::resource::{Place, Resource};
use steersman_store::{self as store, Expected, Revision, StoreError, WriteRequest};
use tokio::time::Instant;

use super::Writer;
use crate::state::Server;
use crate::state::effects::{Outcome, Taken, Turn, Written};

/// What a write holds until it is done.
#[derive(Default)]
pub(crate) struct Held {
    /// What was taken for it.
    pub(crate) taken: Vec<Box<dyn Taken>>,
    /// The turn to write.
    pub(crate) turn: Option<Turn>,
}

impl Writer<'_> {
    /// Writes, or removes when there are no bytes. `object` is the new or last document. What
    /// else changes with it, the resources served or what is handed out to services, has changed
    /// when this returns.
    pub(crate) async fn commit(
        &self,
        place: Place<'_>,
        bytes: Option<Bytes>,
        object: &Arc<Value>,
        expected: Expected,
        held: Held,
    ) -> Result<Revision, StoreError> {
        let gone = bytes.is_none();
        let key = self.resource.key(place).into();
        let ttl = self.resource.rules.ttl().filter(|_| !gone);
        let request = WriteRequest { key, value: bytes, expected, ttl };
        let Held { mut taken, turn } = held;
        let mut follows = false;
        if let Some(effects) = self.effects() {
            if gone {
                taken.extend(effects.release(self.server, object));
            }
            follows = effects.follow(gone);
        }
        let operation = match request.expected {
            _ if gone => "delete",
            Expected::Absent => "create",
            _ => "update",
        };
        if taken.is_empty() && !follows {
            return Ok(write(self.server, self.resource, operation, request).await?.revision);
        }
        let server = Arc::clone(self.server);
        let resource = self.resource.clone();
        let object = Arc::clone(object);
        // A client that goes away must not leave the definition written and not served, the
        // service written and its address free, the pod written and its quota not charged, nor
        // the webhook configured and not asked.
        let written = tokio::spawn(async move {
            let written = write(&server, &resource, operation, request).await;
            let outcome = Outcome::from(&written);
            for held in taken {
                held.settle(outcome).await;
            }
            let revision = written?.revision;
            if let Some(effects) = server.effects.of(&resource) {
                let server = &server;
                let resource = &resource;
                let object = &*object;
                effects.written(Written { server, resource, object, revision, gone }).await;
            }
            drop(turn);
            Ok(revision)
        });
        match written.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(written) => written,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this request with it.
            Err(Err(_)) => std::future::pending().await,
        }
    }
}

/// Asks the store to write, and counts that.
async fn write(
    server: &Server,
    resource: &Resource,
    operation: &str,
    request: WriteRequest,
) -> Result<store::Written, StoreError> {
    let began = Instant::now();
    let written = server.store.write(request).await;
    // Who was slower may try again, which is no failure of the store.
    let failed = !matches!(written, Ok(_) | Err(StoreError::Conflict { .. }));
    server.metrics.storage.asked(operation, resource, failed, began.elapsed());
    written
}
