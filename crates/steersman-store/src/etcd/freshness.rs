//! "Which revision are you at?": the one question that makes a read of the index linearizable.
//!
//! Whoever comes while a question is on its way waits for the next one, because the answer to the
//! one that is on its way may not know of what was acknowledged just before. All who wait share it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::client::Client;
use super::error::of_read;
use super::keys::revision;
use super::progress::{Head, Progress};
use crate::StoreError;

/// How many readers one question serves at most.
const READERS_MAX: usize = 1024;

/// Who waits for an answer.
type Reader = oneshot::Sender<Result<Head, StoreError>>;

/// The readers' side.
#[derive(Clone)]
pub(super) struct Freshness {
    readers: mpsc::Sender<Reader>,
}

/// The side that asks, as a task.
pub(super) struct Asker {
    readers: mpsc::Receiver<Reader>,
    client: Arc<Client>,
    progress: Arc<Progress>,
    timeout: Duration,
}

impl Freshness {
    pub(super) fn new(
        client: Arc<Client>,
        progress: Arc<Progress>,
        timeout: Duration,
    ) -> (Self, Asker) {
        let (readers, receiver) = mpsc::channel(READERS_MAX);
        (Self { readers }, Asker { readers: receiver, client, progress, timeout })
    }

    /// Where etcd is, asked after this call.
    pub(super) async fn ask(&self, deadline: Instant) -> Result<Head, StoreError> {
        let (reader, answer) = oneshot::channel();
        let asked = async {
            self.readers.send(reader).await.ok()?;
            answer.await.ok()
        };
        match timeout_at(deadline, asked).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(unavailable("the store is closed")),
            Err(_) => Err(unavailable("etcd does not say which revision it is at")),
        }
    }
}

impl Asker {
    /// Asks for whoever waits; ends with the last of the readers' side.
    pub(super) async fn run(mut self) {
        let mut waiting = Vec::new();
        while self.readers.recv_many(&mut waiting, READERS_MAX).await > 0 {
            let answer = self.ask().await;
            for reader in waiting.drain(..) {
                let _ = reader.send(answer.clone());
            }
        }
    }

    async fn ask(&self) -> Result<Head, StoreError> {
        let epoch = self.progress.position().epoch;
        let header = self.client.head(Instant::now() + self.timeout).await.map_err(of_read)?;
        let head = Head { epoch, cluster: header.cluster_id, revision: revision(header.revision) };
        self.progress.note(head.revision);
        Ok(head)
    }
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable { reason: reason.into() }
}
