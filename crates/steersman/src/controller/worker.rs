//! Workers: take a key, reconcile its object, decide when it comes again.
//!
//! A reconcile that panics, fails or takes too long never ends a worker. Whatever happens is
//! recorded in a [`ReconcileRecord`]. What runs in place of the reconciler is decided here: the
//! [cleanups](super::cleanup) of an object that is being deleted, and the hook for one that is
//! [gone](super::deleted).

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::broadcast;
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::cleanup::Cleanups;
use super::current::Reconciling;
use super::deleted::Deletions;
use super::history::{RunningReconcile, Slot};
use super::keys::{KeyTable, Why};
use super::metrics::ControllerMetrics;
use super::record::{Outcome, ReconcileRecord};
use super::{Filter, Next};
use crate::cache::{Cache, Untyped};
use crate::cause::{Cause, Causes};
use crate::client::names_an_object;
use crate::clock;
use crate::codec::Codec;
use crate::context::{Equipment, ErasedContext};
use crate::error::{Error, Result, panic_text};
use crate::hot_loop::{HotLoop, Pace};
use crate::kind::ErasedKind;
use crate::object::{ErasedObject, ObjectKey};
use crate::own_writes::Visibility;
use crate::shard::gate::Gate;

/// When a key comes again after a panic around its reconcile, such as one of a rate limiter.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// How often others have their turn before a reconcile for which only other objects ask. A turn takes
/// about two microseconds where nobody else is ready. With ReplicaSets of 100 Pods each, more turns
/// spared more up to about sixty.
const OTHERS_TURNS: usize = 32;

/// A reconciler whose types have been forgotten, so that workers are compiled once.
pub(super) trait ErasedReconciler: Send + Sync {
    fn call(&self, ctx: Arc<ErasedContext>) -> BoxFuture<'_, Result<Next>>;

    /// An object of the kind as JSON.
    fn encode(&self, object: &dyn ErasedObject) -> serde_json::Result<Vec<u8>>;
}

/// What all workers of a controller share.
pub(super) struct Worker {
    pub(super) name: Arc<str>,
    pub(super) kind: ErasedKind,
    pub(super) codec: Codec,
    pub(super) cache: Cache<Untyped>,
    pub(super) only: Option<Filter>,
    pub(super) keys: Arc<KeyTable>,
    pub(super) equipment: Arc<Equipment>,
    pub(super) metrics: ControllerMetrics,
    pub(super) cleanups: Cleanups,
    pub(super) deletions: Option<Arc<Deletions>>,
    pub(super) reconciler: Box<dyn ErasedReconciler>,
    pub(super) timeout: Option<Duration>,
    pub(super) records: broadcast::Sender<Arc<ReconcileRecord>>,
    /// Lets only some keys through, where replicas share them.
    pub(super) gate: Option<Arc<Gate>>,
}

/// What is to be done about a key.
struct Work<'a> {
    key: &'a ObjectKey,
    causes: Causes,
    /// The deletions of the key for which the hook is due.
    deletions: Option<&'a Deletions>,
    /// The object, if there is one that concerns the controller.
    object: Option<Arc<dyn ErasedObject>>,
}

/// Runs this many workers until shutdown, then lets running reconciles end. Those that are not
/// wanted any longer are aborted with this future.
pub(super) async fn run(worker: Arc<Worker>, concurrency: usize, shutdown: CancellationToken) {
    let ids = Arc::new(AtomicU64::new(1));
    let mut workers = JoinSet::new();
    for slot in 0..concurrency {
        workers.spawn(Arc::clone(&worker).work(slot, Arc::clone(&ids)));
    }
    shutdown.cancelled().await;
    worker.keys.queue.shut_down();
    // The manager aborts what takes too long.
    while workers.join_next().await.is_some() {}
}

impl Worker {
    async fn work(self: Arc<Self>, slot: Slot, ids: Arc<AtomicU64>) {
        while let Some(key) = self.keys.queue.get().await {
            let one = AssertUnwindSafe(self.pass_gate(slot, &key, &ids)).catch_unwind();
            if one.await.is_err() {
                tracing::error!(controller = &*self.name, %key, "panic around a reconcile, requeued");
                self.keys.requeue_after(&key, Cause::Retry(1), Instant::now(), AFTER_PANIC);
            }
            self.keys.queue.done(&key);
        }
    }

    /// Does what is to be done about a key, unless it has to wait or there is nothing to do.
    pub(super) async fn attend(&self, slot: Slot, key: &ObjectKey, ids: &AtomicU64) {
        // A reconcile that does not see what the last one wrote would write it again.
        if !self.sees_its_writes(key).await {
            return;
        }
        self.let_others_go_first(key).await;
        let waiting = self.keys.causes.take(key);
        if waiting.causes.is_empty() {
            // Whoever queued it noted why; the reconcile before this one took that, and saw it.
            return;
        }
        if let Some(delay) = self.slowed(key, &waiting.causes) {
            return self.keys.postpone(key, waiting, delay);
        }
        // An object that this controller ignores is as good as gone.
        let concerned = |object: &Arc<dyn ErasedObject>| {
            self.only.as_ref().is_none_or(|only| only.concerns(&**object))
        };
        let object = self.cache.get_erased(key).filter(concerned);
        let deletions = self.deletions.as_deref().filter(|deletions| deletions.concern(key));
        match (&object, deletions) {
            (None, None) => return self.keys.forget(key, Why::Deleted),
            (None, Some(_)) => self.keys.forget(key, Why::DeletionPending),
            (Some(_), _) => {}
        }
        let id = ids.fetch_add(1, Ordering::Relaxed);
        self.run_recorded(slot, id, Work { key, causes: waiting.causes, deletions, object }).await;
    }

    /// Lets whoever is ready have a turn before a reconcile for which only other objects ask:
    /// they rarely change alone, and what is written meanwhile is seen by this reconcile, which
    /// else would have another after it.
    async fn let_others_go_first(&self, key: &ObjectKey) {
        if self.keys.causes.is_news_of_others(&self.kind.names().name, key) {
            for _ in 0..OTHERS_TURNS {
                yield_now().await;
            }
        }
    }

    /// Does the work on a key while logs, metrics and the debug page can see it, decides when
    /// the key comes again, and records how it went.
    async fn run_recorded(&self, slot: Slot, id: u64, work: Work<'_>) {
        let key = work.key;
        let causes = work.causes.clone();
        let span =
            tracing::info_span!("reconcile", controller = &*self.name, %key, id, reason = %causes);
        let active = self.metrics.begin(&causes);
        let began = Instant::now();
        let started = clock::at(began);
        let running = self.keys.history.begin(
            slot,
            RunningReconcile { key: key.clone(), id, causes: causes.clone(), since: started },
        );
        let current = Reconciling { controller: Arc::clone(&self.name), key: key.clone() };
        let outcome = current.run(self.work_on(work).instrument(span.clone())).await;
        let ended = Instant::now();
        let duration = ended - began;
        self.metrics.ended(&outcome, duration);
        // Whoever receives the record no longer finds it among those that run.
        drop(active);
        drop(running);
        span.in_scope(|| self.schedule(key, &causes, &outcome, ended));
        let record = Arc::new(ReconcileRecord {
            controller: Arc::clone(&self.name),
            key: key.clone(),
            id,
            causes,
            outcome,
            started,
            duration,
        });
        self.keys.history.add(&record);
        let _ = self.records.send(record); // nobody need listen
    }

    /// Whether the caches show what the last reconcile of this key wrote. If not, it comes again.
    async fn sees_its_writes(&self, key: &ObjectKey) -> bool {
        match self.keys.own_writes.visible(key).await {
            Visibility::Visible => true,
            Visibility::Behind(recheck) => {
                self.keys.queue.add_after(key.clone(), recheck);
                false
            }
            Visibility::GivenUp => {
                tracing::warn!(controller = &*self.name, %key,
                    "cache does not show own writes, reconciling all the same");
                true
            }
        }
    }

    /// How long a key has to wait that is woken by nothing but what it writes, over and over.
    fn slowed(&self, key: &ObjectKey, causes: &Causes) -> Option<Duration> {
        match self.keys.own_writes.hot_loops.pace(key, causes) {
            Pace::Now => None,
            Pace::Later(delay) => Some(delay),
            Pace::Found(delay, found) => {
                let HotLoop { causes, changing, .. } = *found;
                let changing = changing.join("; ");
                tracing::warn!(controller = &*self.name, %key, %causes, changing,
                    "hot loop: reconciled again and again because of its own writes, slowed down");
                self.metrics.hot_loops.inc();
                Some(delay)
            }
        }
    }

    /// The hook for what is gone runs before what took its name is reconciled.
    async fn work_on(&self, work: Work<'_>) -> Outcome {
        let Work { key, causes, deletions, object } = work;
        if let Some(deletions) = deletions {
            match with_timeout(self.timeout, deletions.run(key, &self.equipment.client)).await {
                Some(None) => {}
                Some(Some(failure)) => return failure,
                None => return Outcome::TimedOut,
            }
        }
        match object {
            Some(object) => self.reconcile(key, object, causes).await,
            None => Outcome::Settled,
        }
    }

    /// Calls the reconciler, then writes the status it collected, however it ended.
    async fn reconcile(
        &self,
        key: &ObjectKey,
        object: Arc<dyn ErasedObject>,
        causes: Causes,
    ) -> Outcome {
        let ctx = match with_timeout(self.timeout, self.prepare(key, object, causes)).await {
            Some(Ok(ctx)) => ctx,
            // It went before anything was done for it.
            Some(Err(error)) if error.status().is_some_and(names_an_object) => {
                return Outcome::Settled;
            }
            Some(Err(error)) => {
                self.read_again(key, &error);
                return error.into();
            }
            None => return Outcome::TimedOut,
        };
        let caught = AssertUnwindSafe(self.act(&ctx)).catch_unwind();
        let ended = with_timeout(self.timeout, caught).await;
        let flushed = with_timeout(self.timeout, ctx.flush_status(&self.encode())).await;
        if let Some(Ok(Err(error))) = &ended {
            self.read_again(key, error);
        }
        if let Some(Err(error)) = &flushed {
            self.read_again(key, error);
        }
        match (ended, flushed) {
            (None, _) | (_, None) => Outcome::TimedOut,
            (Some(Err(panic)), _) => Outcome::Panicked(panic_text(&*panic)),
            (Some(Ok(Err(error))), Some(Err(unwritten))) => Outcome::Failed(format!(
                "{error}; and its status could not be written: {unwritten}"
            )),
            (Some(Ok(Err(error))), _) | (Some(Ok(Ok(_))), Some(Err(error))) => error.into(),
            (Some(Ok(Ok(Next::Settled))), Some(Ok(()))) => Outcome::Settled,
            (Some(Ok(Ok(Next::After(delay)))), Some(Ok(()))) => Outcome::After(delay),
        }
    }

    /// A conflict says that a cache shows an old state of an object. Its watch may be late; but it
    /// may also have lost the change, and then every retry would end the same.
    fn read_again(&self, key: &ObjectKey, error: &Error) {
        let status = error.status().filter(|_| error.is_conflict());
        let Some(details) = status.and_then(|status| status.details.as_ref()) else { return };
        let Equipment { caches, declared, .. } = &*self.equipment;
        let object =
            ObjectKey { namespace: key.namespace.clone(), name: details.name.as_str().into() };
        for cache in declared.caches_named(&details.group, &details.kind, caches) {
            cache.reread(&object);
        }
    }

    /// Makes the context, with the object as it is once it has the finalizers it needs.
    async fn prepare(
        &self,
        key: &ObjectKey,
        object: Arc<dyn ErasedObject>,
        causes: Causes,
    ) -> Result<Arc<ErasedContext>> {
        let context = |object, causes| {
            let equipment = Arc::clone(&self.equipment);
            let kind = self.kind.clone();
            Arc::new(ErasedContext::new(key.clone(), object, kind, equipment, causes))
        };
        if self.cleanups.is_empty() {
            return Ok(context(object, causes));
        }
        let ctx = context(object, causes.clone());
        Ok(match self.cleanups.hold(&ctx, self.codec).await? {
            None => ctx,
            Some(held) => {
                let version = held.metadata().resource_version.as_deref();
                self.keys.begins_finalized(key, version);
                context(held, causes)
            }
        })
    }

    async fn act(&self, ctx: &Arc<ErasedContext>) -> Result<Next> {
        if self.cleanups.concern(ctx.meta()) {
            return self.cleanups.run(ctx, &self.encode()).await;
        }
        self.reconciler.call(Arc::clone(ctx)).await
    }

    fn encode(&self) -> impl Fn(&dyn ErasedObject) -> serde_json::Result<Vec<u8>> + Sync {
        |object| self.reconciler.encode(object)
    }

    /// Decides when the key comes again.
    fn schedule(&self, key: &ObjectKey, causes: &Causes, outcome: &Outcome, ended: Instant) {
        if !outcome.is_failure() {
            tracing::debug!("reconciled {key} because {causes} → {outcome}");
        }
        match outcome {
            Outcome::Settled => self.keys.forget(key, Why::NotRetried),
            Outcome::After(delay) => {
                self.keys.forget(key, Why::NotRetried);
                self.keys.requeue_after(key, Cause::Timer, ended, *delay);
            }
            Outcome::Terminal(error) => {
                tracing::error!(
                    error,
                    "reconcile of {key} because {causes} failed with a terminal error, not retried"
                );
                self.keys.forget(key, Why::NotRetried);
            }
            Outcome::Failed(_) | Outcome::Panicked(_) | Outcome::TimedOut => {
                let retry = self.keys.retry(key);
                tracing::warn!(
                    %outcome,
                    retry,
                    "reconcile of {key} because {causes} failed, requeued with backoff"
                );
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
