//! Workers: take a key, reconcile its object, decide when it comes again.
//!
//! A reconcile that panics, fails or takes too long never ends a worker. Whatever happens is
//! told in a [`ReconcileRecord`].

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Filter, Next, Reconciler};
use crate::cache::Cache;
use crate::caches::Caches;
use crate::cause::{Cause, CauseBook, Causes};
use crate::client::Client;
use crate::context::{Context, ReconcileScope};
use crate::error::{Error, Result, panic_text};
use crate::kind::{Kind, KindId};
use crate::object::{AnyObject, ObjectKey};
use crate::own_writes::{OwnWrites, Visibility};
use crate::workqueue::WorkQueue;

/// When a key comes again after a panic around its reconcile, such as one of a rate limiter.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// A reconciler whose type has been forgotten, so that workers are compiled once per kind.
pub(super) trait ErasedReconciler<K>: Send + Sync {
    fn call(&self, object: Arc<K>, ctx: Context<K>) -> BoxFuture<'_, Result<Next>>;
}

impl<K: AnyObject, R: Reconciler<K>> ErasedReconciler<K> for R {
    fn call(&self, object: Arc<K>, ctx: Context<K>) -> BoxFuture<'_, Result<Next>> {
        // The call itself is inside the future, so that its panics are caught as well.
        Box::pin(async move { self.reconcile(object, ctx).await })
    }
}

/// One reconcile, as it happened.
#[derive(Clone, Debug)]
pub struct ReconcileRecord {
    /// The controller's name.
    pub controller: Arc<str>,
    /// Which object.
    pub key: ObjectKey,
    /// Counts the reconciles of this controller.
    pub id: u64,
    /// Why it happened.
    pub causes: Causes,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Duration,
}

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well; the next one comes when something changes.
    Settled,
    /// Well; the next one comes after this time at the latest.
    After(Duration),
    /// With an error; it will be retried.
    Failed(String),
    /// With an error that retrying cannot mend.
    Terminal(String),
    /// With a panic; it will be retried.
    Panicked(String),
    /// It took too long and was aborted; it will be retried.
    TimedOut,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled => f.write_str("settled"),
            Self::After(delay) => write!(f, "again in {delay:.1?}"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Terminal(error) => write!(f, "failed for good: {error}"),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::TimedOut => f.write_str("timed out"),
        }
    }
}

/// What all workers of a controller share.
pub(super) struct Worker<K> {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind<K>,
    pub(super) client: Client,
    pub(super) caches: Caches,
    pub(super) declared: Arc<HashSet<KindId>>,
    pub(super) cache: Cache<K>,
    pub(super) only: Option<Filter<K>>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) causes: Arc<CauseBook>,
    pub(super) own_writes: Arc<OwnWrites>,
    pub(super) reconciler: Arc<dyn ErasedReconciler<K>>,
    pub(super) timeout: Option<Duration>,
    pub(super) records: broadcast::Sender<Arc<ReconcileRecord>>,
}

/// Runs this many workers until shutdown, then lets running reconciles end. Those that are not
/// wanted any longer are aborted with this future.
pub(super) async fn run<K: AnyObject>(
    worker: Arc<Worker<K>>,
    concurrency: usize,
    shutdown: CancellationToken,
) {
    let ids = Arc::new(AtomicU64::new(1));
    let mut workers = JoinSet::new();
    for _ in 0..concurrency {
        workers.spawn(Arc::clone(&worker).work(Arc::clone(&ids)));
    }
    shutdown.cancelled().await;
    worker.queue.shut_down();
    // The manager aborts what takes too long.
    while workers.join_next().await.is_some() {}
}

impl<K: AnyObject> Worker<K> {
    async fn work(self: Arc<Self>, ids: Arc<AtomicU64>) {
        while let Some(key) = self.queue.get().await {
            let id = ids.fetch_add(1, Ordering::Relaxed);
            let one = AssertUnwindSafe(self.reconcile_key(&key, id)).catch_unwind();
            if one.await.is_err() {
                tracing::error!(controller = &*self.name, %key, "panic around a reconcile, retried");
                self.queue.add_after(key.clone(), AFTER_PANIC);
            }
            self.queue.done(&key);
        }
    }

    async fn reconcile_key(&self, key: &ObjectKey, id: u64) {
        match self.own_writes.visible(key).await {
            Visibility::Visible => {}
            Visibility::Behind(recheck) => return self.queue.add_after(key.clone(), recheck),
            Visibility::GivenUp => {
                tracing::warn!(controller = &*self.name, %key, "cache does not show own writes");
            }
        }
        let causes = self.causes.take(key);
        let concerned = |object: &Arc<K>| self.only.as_ref().is_none_or(|only| only(object));
        let Some(object) = self.cache.get(key).filter(concerned) else {
            self.own_writes.forget(key);
            self.queue.forget(key);
            return;
        };
        let span =
            tracing::info_span!("reconcile", controller = &*self.name, %key, id, reason = %causes);
        let started = Instant::now();
        let outcome = self.reconcile(object, causes.clone()).instrument(span.clone()).await;
        span.in_scope(|| self.schedule(key, &outcome));
        let record = ReconcileRecord {
            controller: Arc::clone(&self.name),
            key: key.clone(),
            id,
            causes,
            outcome,
            duration: started.elapsed(),
        };
        let _ = self.records.send(Arc::new(record)); // nobody need listen
    }

    /// Calls the reconciler, then writes the status it collected, however it ended.
    async fn reconcile(&self, object: Arc<K>, causes: Causes) -> Outcome {
        let scope = ReconcileScope {
            client: self.client.clone(),
            caches: self.caches.clone(),
            declared: Arc::clone(&self.declared),
            own_writes: Arc::clone(&self.own_writes),
            causes,
            status: Mutex::new(None),
            own_version: Mutex::new(None),
        };
        let ctx = Context::new(Arc::clone(&object), self.kind.clone(), scope);
        let called = self.reconciler.call(object, ctx.clone());
        let caught = AssertUnwindSafe(called).catch_unwind();
        let ended = with_timeout(self.timeout, caught).await;
        let flushed = with_timeout(self.timeout, ctx.flush_status()).await;
        match (ended, flushed) {
            (None, _) | (_, None) => Outcome::TimedOut,
            (Some(Err(panic)), _) => Outcome::Panicked(panic_text(&*panic)),
            (Some(Ok(Err(error))), Some(Err(unwritten))) => Outcome::Failed(format!(
                "{error}; and its status could not be written: {unwritten}"
            )),
            (Some(Ok(Err(error))), _) | (Some(Ok(Ok(_))), Some(Err(error))) => failed(&error),
            (Some(Ok(Ok(Next::Settled))), Some(Ok(()))) => Outcome::Settled,
            (Some(Ok(Ok(Next::After(delay)))), Some(Ok(()))) => Outcome::After(delay),
        }
    }

    /// Decides when the key comes again.
    fn schedule(&self, key: &ObjectKey, outcome: &Outcome) {
        match outcome {
            Outcome::Settled => self.queue.forget(key),
            Outcome::After(delay) => {
                self.queue.forget(key);
                self.causes.schedule(key, Cause::Timer);
                self.queue.add_after(key.clone(), *delay);
            }
            Outcome::Terminal(error) => {
                tracing::error!(error, "reconcile failed for good");
                self.queue.forget(key);
            }
            Outcome::Failed(_) | Outcome::Panicked(_) | Outcome::TimedOut => {
                let retry = self.queue.num_requeues(key) + 1;
                tracing::warn!(%outcome, retry, "reconcile will be retried");
                self.causes.schedule(key, Cause::Retry(retry));
                self.queue.add_rate_limited(key.clone());
            }
        }
    }
}

async fn with_timeout<F: Future>(timeout: Option<Duration>, future: F) -> Option<F::Output> {
    match timeout {
        Some(timeout) => tokio::time::timeout(timeout, future).await.ok(),
        None => Some(future.await),
    }
}

fn failed(error: &Error) -> Outcome {
    let text = error.to_string();
    if error.is_terminal() { Outcome::Terminal(text) } else { Outcome::Failed(text) }
}
