//! The garbage collector: deletes what has lost its last owner, for every kind there is.
//!
//! [`monitors`] reflect the metadata of all kinds into one [`graph`] of owners and dependents;
//! what changes in it becomes work in a queue; workers look at the object and its owners on the
//! server ([`reconcile`]) and decide by [`plan`]: delete it, drop the references to owners that
//! are gone, or leave it. Nothing is deleted on the word of the graph alone.
//!
//! Objects being deleted with the finalizers `foregroundDeletion` and `orphan` are its business
//! too: the first wait for their dependents, the second set them free.

mod graph;
mod monitors;
mod objects;
mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use steersman::events::Recorder;
use steersman::workqueue::{ExponentialBackoff, WorkQueue};
use steersman::{Client, Error, Metrics, Result};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::discovery::{self, ChangeCheck, Discovered, ServedResource};
use graph::{Graph, Work};
use monitors::Monitors;
use objects::Catalogue;

/// How many objects are looked at at the same time.
const WORKERS: usize = 8;
/// How often the server is asked whether it serves other resources than before. What definitions
/// and APIServices add and take away is heard of at once; this is for what nobody tells.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(3600);
/// How soon it is asked again if it did not answer.
const DISCOVERY_RETRY: Duration = Duration::from_secs(1);
/// How long workers wait for the graph to be complete before they start anyway.
const SYNC_PATIENCE: Duration = Duration::from_secs(30);
/// The longest wait after an attempt failed.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// What monitors and workers share.
struct Collector {
    client: Client,
    recorder: Recorder,
    /// Never held across an await.
    graph: Mutex<Graph>,
    queue: WorkQueue<Work>,
    catalogue: Catalogue,
    /// Resources may have come or gone: a CustomResourceDefinition or an APIService changed.
    resources_changed: Notify,
}

/// Collects garbage until told to stop.
pub(crate) async fn run(client: Client, shutdown: CancellationToken) -> Result<()> {
    let client = client.with_field_manager("garbage-collector");
    let (recorder, broadcaster) = Recorder::new(client.clone(), &Metrics::default());
    let recorder = recorder.reporting("garbage-collector-controller");
    let collector = Arc::new(Collector::new(client, recorder));
    let mut workers = JoinSet::new();
    tokio::select! {
        () = Arc::clone(&collector).follow_discovery(&mut workers) => {}
        () = broadcaster.run(shutdown.clone()) => {}
    }
    collector.queue.shut_down();
    Ok(())
}

impl Collector {
    fn new(client: Client, recorder: Recorder) -> Self {
        let backoff = ExponentialBackoff::new(Duration::from_millis(5), BACKOFF_MAX);
        Self {
            client,
            recorder,
            graph: Mutex::default(),
            queue: WorkQueue::new(backoff),
            catalogue: Catalogue::default(),
            resources_changed: Notify::new(),
        }
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, work: Vec<Work>) {
        for item in work {
            self.queue.add(item);
        }
    }

    /// Keeps one monitor per resource. Workers start when the first monitors have told what is
    /// there: before that, an object without dependents may only seem to have none.
    async fn follow_discovery(self: Arc<Self>, workers: &mut JoinSet<()>) {
        let mut monitors = Monitors::default();
        let mut check = ChangeCheck::default();
        let mut known = Vec::new();
        loop {
            let changed = self.resources_changed.notified();
            let pause = match caught(self.discover(&mut check, &known)).await {
                Ok(None) => DISCOVERY_INTERVAL,
                Ok(Some(Discovered { resources, failures })) => {
                    if !failures.is_empty() {
                        check = ChangeCheck::default(); // what failed has to be asked for again
                    }
                    known.clone_from(&resources);
                    self.catalogue.replace(&resources);
                    monitors.follow(resources, &self);
                    if workers.is_empty() {
                        let _ = tokio::time::timeout(SYNC_PATIENCE, monitors.synced()).await;
                        for _ in 0..WORKERS {
                            workers.spawn(Arc::clone(&self).work());
                        }
                    }
                    DISCOVERY_INTERVAL
                }
                Err(error) => {
                    tracing::warn!(%error, "discovery failed; retrying");
                    check = ChangeCheck::default();
                    DISCOVERY_RETRY
                }
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// What the server serves, if that has changed.
    async fn discover(
        &self,
        check: &mut ChangeCheck,
        known: &[ServedResource],
    ) -> Result<Option<Discovered>> {
        if !check.has_changed(&self.client).await? {
            return Ok(None);
        }
        discovery::served_resources(&self.client, known).await.map(Some)
    }

    async fn work(self: Arc<Self>) {
        while let Some(work) = self.queue.get().await {
            match caught(self.attempt(&work)).await {
                Ok(again) => {
                    self.queue.forget(&work);
                    if let Some(delay) = again {
                        self.queue.add_after(work.clone(), delay);
                    }
                }
                Err(error) => {
                    tracing::debug!(?work, %error, "garbage collection failed; requeued");
                    self.queue.add_rate_limited(work.clone());
                }
            }
            self.queue.done(&work);
        }
    }
}

/// What comes of a piece of work; a panic is an error like others, to be tried again.
async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let caught = AssertUnwindSafe(work).catch_unwind().await;
    caught.unwrap_or_else(|_| Err(Error::message("the garbage collector panicked")))
}
