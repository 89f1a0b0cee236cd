//! A controller: which kind it reconciles, what wakes it, and how.
//!
//! Built in one expression:
//! `Controller::of::<AppService>().owns::<Deployment>().reconcile(reconcile)`. Events become
//! keys in a work queue ([`source`]), workers take keys and call the reconciler ([`worker`]),
//! and every reconcile knows its [causes](crate::cause).

mod source;
mod worker;

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::caches::Caches;
use crate::cause::CauseBook;
use crate::client::Client;
use crate::context::Context;
use crate::error::Result;
use crate::informer::Event;
use crate::kind::{Kind, KindId};
use crate::manager::Starting;
use crate::metrics::Metrics;
use crate::object::{AnyObject, Object, ObjectKey};
use crate::own_writes::OwnWrites;
use crate::predicate::Predicate;
use crate::workqueue::{Dump, ExponentialBackoff, RateLimiter, WorkQueue};

use source::{Enqueuer, Source};
pub use source::{IntoWatch, Watch};
use worker::{ErasedReconciler, Worker};
pub use worker::{Outcome, ReconcileRecord};

/// How long caches may take to fill before somebody should know.
const SYNC_WARNING: Duration = Duration::from_secs(30);

/// When a reconciled object wants attention again, if nothing happens to it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Settled,
    /// After this time at the latest.
    After(Duration),
}

/// Brings the world closer to what one object asks for.
///
/// Every `async fn(Arc<K>, Context<K>) -> Result<Next>` is a reconciler, and so is every struct
/// that implements this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot reconcile `{K}`",
    label = "not a reconciler of `{K}`",
    note = "a reconciler is `async fn(Arc<{K}>, Context<{K}>) -> steersman::Result<Next>`, or a \
            struct that implements `Reconciler<{K}>`; its future must be `Send`"
)]
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Reconciles one object. Called again after a while if it fails; must not rely on being
    /// called for every change, only after the last one.
    fn reconcile(
        &self,
        object: Arc<K>,
        ctx: Context<K>,
    ) -> impl Future<Output = Result<Next>> + Send;
}

impl<K, F, Fut> Reconciler<K> for F
where
    F: Fn(Arc<K>, Context<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Next>> + Send,
{
    fn reconcile(
        &self,
        object: Arc<K>,
        ctx: Context<K>,
    ) -> impl Future<Output = Result<Next>> + Send {
        self(object, ctx)
    }
}

/// Tells which objects concern a controller.
type Filter<K> = Arc<dyn Fn(&K) -> bool + Send + Sync>;

/// Hears of every event of the reconciled kind.
type Observer<K> = Box<dyn Fn(&Event<K>) + Send>;

/// The queues of running controllers, for whoever wants to look into them.
#[derive(Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<Vec<DumpQueue>>>);

/// Shows what waits, runs and backs off in a queue, and why.
type DumpQueue = Box<dyn Fn() -> Dump<ObjectKey> + Send>;

impl Queues {
    fn add(&self, queue: WorkQueue<ObjectKey>, causes: Arc<CauseBook>) {
        let dump = move || queue.dump_with(|key| causes.why(key));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(dump));
    }

    pub(crate) fn dump(&self) -> Vec<Dump<ObjectKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|dump| dump()).collect()
    }
}

/// What a controller needs from the manager that runs it.
pub(crate) struct Environment {
    pub(crate) client: Client,
    pub(crate) caches: Caches,
    pub(crate) metrics: Metrics,
    pub(crate) queues: Queues,
    pub(crate) shutdown: CancellationToken,
    pub(crate) records: broadcast::Sender<Arc<ReconcileRecord>>,
    /// To be told when the caches are filled; lets the workers begin.
    pub(crate) starting: Starting,
}

/// A controller, ready for a [`Manager`](crate::Manager).
pub struct Controller {
    name: Arc<str>,
    run: Box<dyn FnOnce(Environment) -> BoxFuture<'static, ()> + Send>,
}

impl Controller {
    /// Begins a controller of this kind. It is woken by every change of its objects.
    pub fn of<K: Object>() -> Builder<K> {
        Self::of_kind(&Kind::of())
    }

    /// Begins a controller of a kind that may be known only at run time:
    /// `Controller::of_kind(&Kind::dynamic(resource, scope))`.
    pub fn of_kind<K: AnyObject>(kind: &Kind<K>) -> Builder<K> {
        Builder {
            name: kind.name().to_lowercase(),
            kind: kind.clone(),
            sources: Vec::new(),
            declared: HashSet::from([kind.id()]),
            predicate: None,
            only: None,
            observers: Vec::new(),
            concurrency: 1,
            limiter: Box::new(ExponentialBackoff::default()),
            fair: false,
            timeout: None,
        }
    }

    /// The controller's name: the field manager of its writes, and what logs and metrics say.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs until the environment shuts down.
    pub(crate) async fn run(self, environment: Environment) {
        (self.run)(environment).await;
    }
}

/// A controller that still lacks its reconciler.
#[must_use = "a controller does nothing until it has a reconciler and a manager runs it"]
pub struct Builder<K> {
    name: String,
    kind: Kind<K>,
    sources: Vec<Source>,
    /// The kinds whose caches this controller reads.
    declared: HashSet<KindId>,
    predicate: Option<Box<dyn Predicate<K>>>,
    only: Option<Filter<K>>,
    observers: Vec<Observer<K>>,
    concurrency: usize,
    limiter: Box<dyn RateLimiter<ObjectKey>>,
    fair: bool,
    timeout: Option<Duration>,
}

impl<K: AnyObject> Builder<K> {
    /// Names the controller; otherwise it has the name of its kind.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Also wakes the owner when an object of kind `C` changes that it controls.
    pub fn owns<C: Object>(self) -> Self {
        self.owns_with(Watch::<C>::of())
    }

    /// Also wakes the owner when an object changes that it controls:
    /// `.owns_with(&kind)` for a kind known only at run time.
    pub fn owns_with(mut self, watch: impl IntoWatch) -> Self {
        let watch = self.declare(watch);
        self.sources.push(source::owned(self.kind.clone(), watch));
        self
    }

    /// Also wakes the objects that `keys` names when an object of another kind changes. When
    /// an object is updated, both what it was and what it is are asked.
    pub fn watches<C: Object, I: IntoIterator<Item = ObjectKey>>(
        self,
        keys: impl Fn(&C) -> I + Send + Sync + 'static,
    ) -> Self {
        self.watches_with(Watch::of(), keys)
    }

    /// The same for a kind that may be known only at run time.
    pub fn watches_with<W: IntoWatch, I: IntoIterator<Item = ObjectKey>>(
        mut self,
        watch: W,
        keys: impl Fn(&W::Object) -> I + Send + Sync + 'static,
    ) -> Self {
        let watch = self.declare(watch);
        self.sources.push(source::mapped(watch, keys));
        self
    }

    /// Keeps a cache of kind `C` to read from, without being woken by it.
    pub fn reads<C: Object>(self) -> Self {
        self.reads_with(Watch::<C>::of())
    }

    /// The same for a kind that may be known only at run time.
    pub fn reads_with(mut self, watch: impl IntoWatch) -> Self {
        let watch = self.declare(watch);
        self.sources.push(source::silent(watch));
        self
    }

    fn declare<W: IntoWatch>(&mut self, watch: W) -> Watch<W::Object> {
        let watch = watch.into_watch();
        self.declared.insert(watch.kind().id());
        watch
    }

    /// Wakes only for the events of the reconciled kind that matter; see
    /// [`predicate`](crate::predicate).
    pub fn when(mut self, predicate: impl Predicate<K>) -> Self {
        self.predicate = Some(Box::new(predicate));
        self
    }

    /// Ignores the objects of the reconciled kind that are none of this controller's business.
    pub fn only(mut self, concerns: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.only = Some(Arc::new(concerns));
        self
    }

    /// Hears of every event of the reconciled kind, before anything is filtered out, in the
    /// order of the events. For state of the controller's own that must follow all objects; it
    /// must not block.
    pub fn observes(mut self, observer: impl Fn(&Event<K>) + Send + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// How many objects are reconciled at the same time; one unless said otherwise.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.concurrency = workers.max(1);
        self
    }

    /// How retries are spaced out.
    pub fn rate_limit(mut self, limiter: impl RateLimiter<ObjectKey> + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Lets namespaces take turns, so that a flood in one does not hold up the others.
    pub fn fair_between_namespaces(mut self) -> Self {
        self.fair = true;
        self
    }

    /// Aborts a reconcile that takes longer than this, and retries it.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Completes the controller.
    pub fn reconcile(self, reconciler: impl Reconciler<K>) -> Controller {
        let reconciler: Arc<dyn ErasedReconciler<K>> = Arc::new(reconciler);
        let name: Arc<str> = self.name.as_str().into();
        Controller { name, run: Box::new(move |env| Box::pin(self.run(reconciler, env))) }
    }

    async fn run(self, reconciler: Arc<dyn ErasedReconciler<K>>, env: Environment) {
        let mut queue = WorkQueue::builder()
            .name(self.name.as_str())
            .rate_limiter(self.limiter)
            .metrics(&env.metrics);
        if self.fair {
            queue = queue.fair_by(|key: &ObjectKey| key.namespace.clone());
        }
        let queue = queue.build();
        let causes = Arc::new(CauseBook::default());
        env.queues.add(queue.clone(), Arc::clone(&causes));
        let enqueuer = Enqueuer { queue: queue.clone(), causes: Arc::clone(&causes) };
        let informer = env.caches.informer_of(&self.kind);
        let own = source::reconciled(
            self.kind.clone(),
            self.observers,
            self.predicate,
            self.only.clone(),
        );
        let synced = async {
            // All at once: a kind that cannot be listed must not keep the others from it.
            let sources = std::iter::once(own).chain(self.sources);
            let attached = sources.map(|source| source(env.caches.clone(), enqueuer.clone()));
            futures::future::join_all(attached).await
        };
        let _held = tokio::select! {
            held = synced => held,
            () = say_that_it_waits(&self.name) => return,
            () = env.shutdown.cancelled() => return,
        };
        tokio::select! {
            () = env.starting.synced() => {}
            () = env.shutdown.cancelled() => return,
        }
        tracing::debug!(controller = self.name, "caches synced, workers start");
        let worker = Worker {
            name: self.name.as_str().into(),
            kind: self.kind,
            client: env.client.with_field_manager(self.name),
            caches: env.caches,
            declared: Arc::new(self.declared),
            cache: informer.cache().clone(),
            only: self.only,
            queue,
            causes,
            own_writes: Arc::new(OwnWrites::default()),
            reconciler,
            timeout: self.timeout,
            records: env.records,
        };
        worker::run(Arc::new(worker), self.concurrency, env.shutdown).await;
    }
}

/// A controller that cannot start must not look like one that has nothing to do. Never ends.
async fn say_that_it_waits(controller: &str) {
    loop {
        tokio::time::sleep(SYNC_WARNING).await;
        tracing::warn!(controller, "still waits for the first list of a kind that it watches");
    }
}
