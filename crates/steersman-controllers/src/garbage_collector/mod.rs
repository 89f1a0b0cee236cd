//! The garbage collector: deletes what has lost its last owner, for every kind there is.
//!
//! [`monitors`] reflect the metadata of all kinds into one [`graph`] of owners and dependents;
//! what changes in it becomes work in a queue; workers look at the object and its owners on the
//! server ([`reconcile`]) and decide by [`plan`]: delete it, drop the references to owners that
//! are gone, or leave it. Nothing is deleted on the word of the graph alone.
//!
//! It is no `Controller` of the framework: that has one kind, known when the program is built, whose
//! objects are keys by name and come from a cache. Here the kinds are those that a server serves
//! today, one object is known by its uid, since names are what references lie about, and nothing of
//! an object is kept but what the graph has. Its queues have Kubernetes' names in the metrics.
//!
//! Objects being deleted with the finalizers `foregroundDeletion` and `orphan` are its business
//! too: the first wait for their dependents, the second set them free.

mod graph;
mod metrics;
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
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::discovery::{self, ChangeCheck, Discovered, ServedResource};
use graph::{Graph, Uid, Work};
use metrics::SyncMetrics;
use monitors::Monitors;
use objects::Catalogue;

/// How many objects are looked at at the same time, and how many dependents of one are set free: as
/// in Kubernetes.
const WORKERS: usize = 20;
/// How often the server is asked whether it serves other resources than before. What definitions
/// and APIServices add and take away is heard of at once; this is for what nobody tells.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(3600);
/// How soon it is asked again if it could not tell of everything, as when a server behind it is down.
const FAILED_INTERVAL: Duration = Duration::from_secs(30);
/// How soon it is asked again if it did not answer.
const DISCOVERY_RETRY: Duration = Duration::from_secs(1);
/// Definitions come by the dozen: the server is asked once none has come for this long, so that
/// whoever installs them need not share it with monitors.
const DISCOVERY_DELAY: Duration = Duration::from_millis(100);
/// The longest that what comes all the time is waited for.
const DISCOVERY_DELAY_MAX: Duration = Duration::from_secs(2);
/// How long workers wait for the graph to be complete before they start anyway.
const SYNC_PATIENCE: Duration = Duration::from_secs(30);
/// The longest wait after an attempt failed, or told nothing yet, as in Kubernetes.
const BACKOFF_MAX: Duration = Duration::from_secs(1000);

/// What monitors and workers share.
struct Collector {
    client: Client,
    /// Never held across an await.
    graph: Mutex<Graph>,
    /// The objects to look at.
    to_delete: WorkQueue<Uid>,
    /// The owners whose dependents are to be set free.
    to_orphan: WorkQueue<Uid>,
    catalogue: Catalogue,
    /// Resources may have come or gone: a CustomResourceDefinition or an APIService changed.
    resources_changed: Notify,
    recorder: Recorder,
    metrics: SyncMetrics,
}

/// What a worker does.
#[derive(Clone, Copy)]
enum Task {
    Delete,
    Orphan,
}

/// What comes of looking at an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Whatever happens next, somebody will tell.
    Done,
    /// Nobody will: it has to be looked at again.
    Again,
}

/// Collects garbage until told to stop; the client writes as all built-in controllers do.
pub(crate) async fn run(
    client: Client,
    recorder: Recorder,
    metrics: Metrics,
    shutdown: CancellationToken,
) -> Result<()> {
    let collector = Arc::new(Collector::new(client, &recorder, &metrics));
    let mut workers = JoinSet::new();
    tokio::select! {
        () = Arc::clone(&collector).follow_discovery(&mut workers) => {}
        () = shutdown.cancelled() => {}
    }
    collector.to_delete.shut_down();
    collector.to_orphan.shut_down();
    Ok(())
}

impl Collector {
    fn new(client: Client, recorder: &Recorder, metrics: &Metrics) -> Self {
        let queue = |name: &str| {
            let backoff = ExponentialBackoff::new(Duration::from_millis(5), BACKOFF_MAX);
            WorkQueue::builder().name(name).rate_limiter(backoff).metrics(metrics).build()
        };
        Self {
            client,
            graph: Mutex::default(),
            to_delete: queue("garbage_collector_attempt_to_delete"),
            to_orphan: queue("garbage_collector_attempt_to_orphan"),
            catalogue: Catalogue::default(),
            resources_changed: Notify::new(),
            recorder: recorder.reporting("garbage-collector-controller"),
            metrics: metrics.families(),
        }
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, work: Vec<Work>) {
        for item in work {
            match item {
                Work::Collect(uid) => self.to_delete.add(uid),
                Work::Orphan(uid) => self.to_orphan.add(uid),
                Work::Report { dependent, owner } => self.report(&dependent, &owner),
            }
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
                    let pause = match failures.is_empty() {
                        true => DISCOVERY_INTERVAL,
                        false => FAILED_INTERVAL,
                    };
                    if !failures.is_empty() {
                        self.metrics.failed();
                        check = ChangeCheck::default(); // what failed has to be asked for again
                    }
                    known.clone_from(&resources);
                    self.catalogue.replace(&resources);
                    let unresolved = self.graph().take_unresolved();
                    self.enqueue(unresolved);
                    monitors.follow(resources, &self);
                    if workers.is_empty() {
                        let _ = timeout(SYNC_PATIENCE, monitors.synced()).await;
                        for _ in 0..WORKERS {
                            workers.spawn(Arc::clone(&self).work(Task::Delete));
                            workers.spawn(Arc::clone(&self).work(Task::Orphan));
                        }
                    }
                    pause
                }
                Err(error) => {
                    tracing::warn!(%error, "discovery failed; retrying");
                    self.metrics.failed();
                    check = ChangeCheck::default();
                    DISCOVERY_RETRY
                }
            };
            tokio::select! {
                () = changed => until_quiet(&self.resources_changed).await,
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

    /// Takes one object after the other out of a queue, until that is shut down.
    async fn work(self: Arc<Self>, task: Task) {
        let queue = match task {
            Task::Delete => &self.to_delete,
            Task::Orphan => &self.to_orphan,
        };
        while let Some(uid) = queue.get().await {
            let attempt = async {
                match task {
                    Task::Delete => self.attempt_to_delete(&uid).await,
                    Task::Orphan => self.attempt_to_orphan(&uid).await,
                }
            };
            match caught(attempt).await {
                Ok(Look::Done) => queue.forget(&uid),
                Ok(Look::Again) => queue.add_rate_limited(Arc::clone(&uid)),
                Err(error) => {
                    tracing::debug!(%uid, %error, "garbage collection failed; requeued");
                    queue.add_rate_limited(Arc::clone(&uid));
                }
            }
            queue.done(&uid);
        }
    }
}

/// Waits until nothing has changed for a while.
async fn until_quiet(changed: &Notify) {
    let end = Instant::now() + DISCOVERY_DELAY_MAX;
    while timeout(DISCOVERY_DELAY, changed.notified()).await.is_ok() && Instant::now() < end {}
}

/// What comes of a piece of work; a panic is an error like others, to be tried again.
async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let caught = AssertUnwindSafe(work).catch_unwind().await;
    caught.unwrap_or_else(|_| Err(Error::message("the garbage collector panicked")))
}
