//! A controller: which kind it reconciles, what wakes it, and how.
//!
//! Built in one expression:
//! `Controller::of::<AppService>().owns::<Deployment>().reconcile(reconcile)`. Events become
//! keys in a work queue ([`source`]), workers take keys and call the reconciler ([`worker`]),
//! and every reconcile knows its [causes](crate::cause).

mod cleanup;
mod deleted;
pub(crate) mod gate;
mod graph;
mod history;
mod hot_loop;
mod metrics;
mod record;
mod remote;
mod sharded;
pub mod source;
mod worker;

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::core::PartialObjectMeta;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::caches::Caches;
use crate::cause::CauseBook;
use crate::client::Client;
use crate::context::{Context, Equipment};
use crate::error::Result;
use crate::events::Recorder;
use crate::handler::{EnqueueRequestForOwner, EnqueueRequestsFromMapFunc, EventHandler, Request};
use crate::informer::Event;
use crate::kind::{Kind, KindId};
use crate::manager::Starting;
use crate::metrics::Metrics;
use crate::object::{AnyObject, Object, ObjectKey};
use crate::own_writes::OwnWrites;
use crate::predicate::Predicate;
use crate::shard::Sharding;
use crate::workqueue::{Dump, ExponentialBackoff, Priority, RateLimiter, WorkQueue};

pub use cleanup::Cleanup;
use cleanup::Cleanups;
pub use deleted::Gone;
use deleted::{Deletions, OnDeleted};
pub use graph::{DeclaredKind, Role};
use history::History;
pub use history::{ControllerHistory, RunningReconcile};
pub use hot_loop::HotLoop;
pub(crate) use hot_loop::HotLoops;
pub(crate) use metrics::ControllerFamilies;
pub use record::{Outcome, ReconcileRecord};
use source::{Attach, Enqueuer, IntoWatch, Reconciled, Source, Watch};
use worker::{ErasedReconciler, Worker};

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

/// The queues of running controllers and what these did lately, for whoever wants to look.
#[derive(Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<Vec<View>>>);

/// A look into one controller.
#[derive(Clone)]
struct View {
    name: Arc<str>,
    concurrency: usize,
    queue: WorkQueue<ObjectKey>,
    causes: Arc<CauseBook>,
    history: Arc<History>,
    own_writes: Arc<OwnWrites>,
}

impl View {
    fn new(name: &str, concurrency: usize, queue: WorkQueue<ObjectKey>) -> Self {
        let history = Arc::new(History::new(concurrency));
        let (causes, own_writes) = Default::default();
        Self { name: name.into(), concurrency, queue, causes, history, own_writes }
    }
}

impl Queues {
    fn add(&self, view: View) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(view);
    }

    /// What waits, runs and backs off in each queue, and why.
    pub(crate) fn dump(&self) -> Vec<Dump<ObjectKey>> {
        let views = self.views();
        views.iter().map(|view| view.queue.dump_with(|key| view.causes.why(key))).collect()
    }

    /// What each controller did lately.
    pub(crate) fn history(&self) -> Vec<ControllerHistory> {
        self.views().iter().map(View::history).collect()
    }

    fn views(&self) -> Vec<View> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl View {
    fn history(&self) -> ControllerHistory {
        let (running, recent, failing) = self.history.shown();
        ControllerHistory {
            controller: self.name.to_string(),
            concurrency: self.concurrency,
            running,
            recent,
            failing,
            hot_loops: self.own_writes.hot_loops.shown(),
        }
    }
}

/// What a controller needs from the manager that runs it.
pub(crate) struct Environment {
    pub(crate) client: Client,
    pub(crate) caches: Caches,
    pub(crate) metrics: Metrics,
    /// Records events; each controller reports in its own name.
    pub(crate) recorder: Recorder,
    pub(crate) queues: Queues,
    pub(crate) shutdown: CancellationToken,
    pub(crate) records: broadcast::Sender<Arc<ReconcileRecord>>,
    /// To be told when the caches are filled; lets the workers begin.
    pub(crate) starting: Starting,
}

/// A controller, ready for a [`Manager`](crate::Manager).
pub struct Controller {
    name: Arc<str>,
    graph: Vec<DeclaredKind>,
    everywhere: bool,
    has_cleanup: bool,
    run: Box<dyn FnOnce(Environment) -> BoxFuture<'static, ()> + Send>,
}

impl Controller {
    /// Begins a controller of this kind. It is woken by every change of its objects.
    pub fn of<K: Object>() -> Builder<K> {
        Self::of_kind(&Kind::of())
    }

    /// Begins a controller that watches only the metadata of this kind's objects: all that it
    /// needs to react to labels, annotations, owners and deletions, at a fraction of the memory.
    pub fn of_metadata<K: Object>() -> Builder<PartialObjectMeta<K>> {
        Self::of_kind(&Kind::<K>::of().metadata())
    }

    /// Begins a controller of a kind that may be known only at run time:
    /// `Controller::of_kind(&Kind::dynamic(resource, scope))`.
    pub fn of_kind<K: AnyObject>(kind: &Kind<K>) -> Builder<K> {
        Builder {
            name: kind.name().to_lowercase(),
            kind: kind.clone(),
            sources: Vec::new(),
            declared: HashSet::from([kind.id()]),
            graph: vec![DeclaredKind::new(kind, Role::Reconciled)],
            predicates: Vec::new(),
            only: None,
            observers: Vec::new(),
            priority: None,
            resync: None,
            concurrency: 1,
            limiter: Box::new(ExponentialBackoff::default()),
            fair: false,
            timeout: None,
            cleanups: Cleanups::default(),
            on_deleted: None,
            sharding: None,
        }
    }

    /// The controller's name: the field manager of its writes, and what logs and metrics say.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which kinds the controller has to do with, and how; its own comes first.
    pub fn graph(&self) -> &[DeclaredKind] {
        &self.graph
    }

    /// Reconciles on every replica, elected or not. Its writes are not fenced.
    #[must_use]
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    pub(crate) fn runs_everywhere(&self) -> bool {
        self.everywhere
    }

    /// Whether it puts finalizers on the objects that it reconciles.
    pub fn has_cleanup(&self) -> bool {
        self.has_cleanup
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
    sources: Vec<Attach>,
    /// The kinds whose caches this controller reads.
    declared: HashSet<KindId>,
    graph: Vec<DeclaredKind>,
    predicates: Vec<Box<dyn Predicate<K>>>,
    only: Option<Filter<K>>,
    observers: Vec<Observer<K>>,
    priority: Option<Priority>,
    resync: Option<Duration>,
    concurrency: usize,
    limiter: Box<dyn RateLimiter<ObjectKey>>,
    fair: bool,
    timeout: Option<Duration>,
    cleanups: Cleanups<K>,
    on_deleted: OnDeleted<K>,
    sharding: Option<Sharding>,
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

    /// The same for every owner of this controller's kind, not only the one that controls.
    pub fn owns_any<C: Object>(self) -> Self {
        self.owns_any_with(Watch::<C>::of())
    }

    /// Like [`owns`](Self::owns), but watches only the metadata of `C`. Such children are read
    /// as `ctx.children::<PartialObjectMeta<C>>()`.
    pub fn owns_metadata<C: Object>(self) -> Self {
        self.owns_with(Watch::<PartialObjectMeta<C>>::metadata())
    }

    /// Also wakes the owner when an object changes that it controls: `.owns_with(&kind)` for a
    /// kind known only at run time, `.owns_with(Watch::<C>::of().when(…))` for some events only.
    pub fn owns_with(self, watch: impl IntoWatch) -> Self {
        let handler = EnqueueRequestForOwner::of_kind(&self.kind).only_controller();
        self.wakes(Role::Owned, watch, handler)
    }

    /// The same for every owner of this controller's kind.
    pub fn owns_any_with(self, watch: impl IntoWatch) -> Self {
        let handler = EnqueueRequestForOwner::of_kind(&self.kind);
        self.wakes(Role::Owned, watch, handler)
    }

    /// Also wakes the objects that `keys` names when an object of another kind changes. When
    /// an object is updated, both what it was and what it is are asked.
    pub fn watches<C: Object, I: IntoIterator<Item: Into<Request>>>(
        self,
        keys: impl Fn(&C) -> I + Send + Sync + 'static,
    ) -> Self {
        self.watches_with(Watch::of(), EnqueueRequestsFromMapFunc::new(keys))
    }

    /// The same, with the metadata alone of another kind.
    pub fn watches_metadata<C: Object, I: IntoIterator<Item: Into<Request>>>(
        self,
        keys: impl Fn(&PartialObjectMeta<C>) -> I + Send + Sync + 'static,
    ) -> Self {
        self.watches_with(Watch::metadata(), EnqueueRequestsFromMapFunc::new(keys))
    }

    /// Also wakes the objects that a [handler](crate::handler) names when an object of another
    /// kind changes.
    pub fn watches_with<W: IntoWatch>(
        self,
        watch: W,
        handler: impl EventHandler<W::Object>,
    ) -> Self {
        self.wakes(Role::Watched, watch, handler)
    }

    /// Keeps a cache of kind `C` to read from, without being woken by it.
    pub fn reads<C: Object>(self) -> Self {
        self.reads_with(Watch::<C>::of())
    }

    /// The same for a kind that may be known only at run time.
    pub fn reads_with(mut self, watch: impl IntoWatch) -> Self {
        let watch = self.declare(Role::Read, watch);
        self.sources.push(source::silent(watch));
        self
    }

    /// Also wakes the objects that a channel, a stream or a timer names.
    pub fn source(mut self, source: Source) -> Self {
        self.sources.push(source.attach());
        self
    }

    /// Also wakes every object of the reconciled kind this often, or up to a tenth later.
    pub fn every(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// How urgent live changes of the reconciled kind are.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    fn wakes<W: IntoWatch>(
        mut self,
        role: Role,
        watch: W,
        handler: impl EventHandler<W::Object>,
    ) -> Self {
        let watch = self.declare(role, watch);
        self.sources.push(source::watched(watch, handler));
        self
    }

    fn declare<W: IntoWatch>(&mut self, role: Role, watch: W) -> Watch<W::Object> {
        let watch = watch.into_watch();
        self.declared.insert(watch.kind().id());
        self.graph.push(DeclaredKind::new(watch.kind(), role));
        watch
    }

    /// Wakes only for the events of the reconciled kind that matter; see
    /// [`predicate`](crate::predicate). Of several, all must let an event pass.
    pub fn when(mut self, predicate: impl Predicate<K>) -> Self {
        self.predicates.push(Box::new(predicate));
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
        let graph = self.graph.clone();
        let everywhere = self.sharding.is_some(); // each member has keys of its own
        Controller {
            name,
            graph,
            everywhere,
            has_cleanup: !self.cleanups.is_empty(),
            run: Box::new(move |env| Box::pin(self.run(reconciler, env))),
        }
    }

    async fn run(self, reconciler: Arc<dyn ErasedReconciler<K>>, env: Environment) {
        let mut queue = WorkQueue::builder()
            .name(self.name.as_str())
            .rate_limiter(self.limiter)
            .metrics(&env.metrics);
        if self.fair {
            queue = queue.fair_by(|key: &ObjectKey| key.namespace.clone());
        }
        let view = View::new(&self.name, self.concurrency, queue.build());
        env.queues.add(view.clone());
        let enqueuer = Enqueuer { queue: view.queue.clone(), causes: Arc::clone(&view.causes) };
        let informer = env.caches.informer_of(&self.kind);
        let deletions = self.on_deleted.map(|tell| Arc::new(Deletions::new(tell)));
        let own = source::reconciled(Reconciled {
            kind: self.kind.clone(),
            observers: self.observers,
            predicates: self.predicates,
            only: self.only.clone(),
            priority: self.priority,
            resync: self.resync,
            deletions: deletions.clone(),
        });
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
        let client = env.client.with_field_manager(self.name.as_str());
        let cache = informer.cache().clone();
        let (client, member) = sharded::join(self.sharding, client, cache, enqueuer);
        let worker = Worker {
            metrics: env.metrics.controllers.of(&self.name, self.concurrency),
            name: view.name,
            kind: self.kind,
            equipment: Arc::new(Equipment::new(&env.recorder, &self.name)),
            client,
            caches: env.caches,
            declared: Arc::new(self.declared),
            cache: informer.cache().clone(),
            only: self.only,
            queue: view.queue,
            causes: view.causes,
            own_writes: view.own_writes,
            history: view.history,
            cleanups: self.cleanups,
            deletions,
            reconciler,
            timeout: self.timeout,
            records: env.records,
            gate: member.as_ref().map(|member| Arc::clone(member.gate())),
        };
        worker::run(Arc::new(worker), self.concurrency, env.shutdown).await;
        if let Some(member) = member {
            member.leave().await;
        }
    }
}

/// A controller that cannot start must not look like one that has nothing to do. Never ends.
async fn say_that_it_waits(controller: &str) {
    loop {
        tokio::time::sleep(SYNC_WARNING).await;
        tracing::warn!(controller, "still waits for the first list of a kind that it watches");
    }
}
