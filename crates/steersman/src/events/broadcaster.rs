//! Writes what recorders record.
//!
//! A few writes at a time, each series in at most one of them. A server that does not answer
//! costs nothing but patience: what happens meanwhile is counted in the book.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::book::{Task, Write, Written};
use super::metrics::Loss;
use crate::client::Client;
use crate::error::{Error, Result};

/// As many writes are under way at most.
const WRITES_MAX: usize = 8;
/// A write that takes longer has failed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

type Writes = FuturesUnordered<BoxFuture<'static, (Write, Written)>>;

/// Writes the events of all recorders of a client in the background; see
/// [`Recorder::new`](super::Recorder::new).
#[must_use = "events are written only while the broadcaster runs"]
pub struct Broadcaster {
    client: Client,
    shared: Arc<Shared>,
}

impl Broadcaster {
    pub(super) fn new(client: Client, shared: Arc<Shared>) -> Self {
        Self { client, shared }
    }

    /// Writes events until `shutdown`, then those that are left, each once.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut writes = Writes::new();
        while !shutdown.is_cancelled() {
            self.begin_due(&mut writes);
            let next = self.shared.book().next_due().filter(|_| writes.len() < WRITES_MAX);
            tokio::select! {
                () = shutdown.cancelled() => {}
                Some((write, written)) = writes.next() => self.finish(write, written),
                () = self.shared.wake.notified() => {}
                () = at(next) => {}
            }
        }
        self.flush(writes).await;
    }

    fn begin_due(&self, writes: &mut Writes) {
        while writes.len() < WRITES_MAX {
            let Some(write) = self.shared.book().take_due(Instant::now()) else { return };
            writes.push(Box::pin(send(self.client.clone(), write)));
        }
    }

    /// Writes everything that is left. What fails now is lost.
    async fn flush(&self, mut writes: Writes) {
        loop {
            while writes.len() < WRITES_MAX {
                let Some(write) = self.shared.book().take_unwritten() else { break };
                writes.push(Box::pin(send(self.client.clone(), write)));
            }
            match writes.next().await {
                // There may be more of it by now.
                Some((write, written @ (Written::Done | Written::Missing))) => {
                    self.finish(write, written);
                }
                Some(_) => self.shared.metrics.lost(Loss::Failed),
                None => return,
            }
        }
    }

    fn finish(&self, write: Write, written: Written) {
        if written == Written::Done {
            self.shared.metrics.wrote();
        }
        let loss = {
            let mut book = self.shared.book();
            let loss = book.finish(write, &written, Instant::now());
            self.shared.metrics.open(book.len());
            loss
        };
        if let Some(loss) = loss {
            self.shared.metrics.lost(loss);
        }
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn send(client: Client, write: Write) -> (Write, Written) {
    let reporter = &write.identity.group.subject.reporter;
    let client = reporter.writer.as_ref().map_or(client, |writer| (*writer.client).clone());
    let client = match &reporter.field_manager {
        Some(name) => client.with_field_manager(Arc::clone(name)),
        None => client,
    };
    let client = match &reporter.acting_as {
        Some(user) => client.acting_as(user),
        None => client,
    };
    let attempt = async {
        match &write.task {
            Task { exists: false, event, .. } => event.create(&client).await,
            Task { exists: true, event, .. } => event.update(&client).await,
        }
    };
    let written = match timeout(WRITE_TIMEOUT, attempt).await {
        Ok(result) => judge(&write, &result),
        Err(_) => {
            tracing::debug!("event write timed out; retrying");
            Written::Failed
        }
    };
    (write, written)
}

/// What an answer means.
fn judge(write: &Write, result: &Result<()>) -> Written {
    let Err(error) = result else { return Written::Done };
    let created = !write.task.exists;
    let code = error.status().map_or(0, |status| status.code);
    match code {
        // An earlier try had arrived, and only its answer was lost.
        409 if created && error.is_already_exists() => Written::Done,
        404 if !created => Written::Missing,
        0 | 408 | 409 | 429 | 500.. => {
            tracing::debug!(%error, "event write failed; retrying");
            Written::Failed
        }
        _ => {
            log_rejection(write, error);
            Written::Refused
        }
    }
}

/// Nothing can be created in a namespace that is being deleted; that is as it should be.
fn log_rejection(write: &Write, error: &Error) {
    let subject = &write.identity.group.subject;
    let causes = error.status().and_then(|status| status.details.as_ref());
    let terminating = causes
        .is_some_and(|details| details.causes.iter().any(|c| c.reason == "NamespaceTerminating"));
    if terminating || error.is_not_found() {
        tracing::debug!(?subject, %error, "event dropped: its namespace is terminating or gone");
    } else {
        tracing::warn!(?subject, %error, "event rejected by the server; dropped");
    }
}
