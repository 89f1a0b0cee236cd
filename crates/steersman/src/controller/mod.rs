//! A controller: which kind it reconciles, what wakes it, and how.
//!
//! Built in one expression:
//! `Controller::of::<AppService>().owns::<Deployment>().reconcile(reconcile)`. Events become
//! keys in a work queue ([`source`]), workers take keys and call the reconciler (`worker`),
//! and every reconcile knows its [causes](crate::cause).

mod assembly;
mod builder;
mod cleanup;
mod current;
mod deleted;
mod graph;
mod history;
mod keys;
mod mapping;
mod metrics;
mod phase;
mod record;
mod remote;
mod sharded;
pub mod source;
mod typed;
mod worker;

use std::any::Any;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::core::PartialObjectMeta;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::cache::{Item, Untyped};
use crate::caches::Caches;
use crate::client::Client;
use crate::context::Context;
use crate::election::InvalidSettings;
use crate::error::Result;
use crate::events::{EventForm, Recorder};
use crate::informer::Event;
use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::object::{AnyObject, ErasedObject, Object, ObjectKey};
use crate::shard::Seat;
use crate::workqueue::Dump;

pub use crate::hot_loop::HotLoop;
pub use builder::Builder;
pub use cleanup::Cleanup;
pub use current::Reconciling;
pub use deleted::Gone;
pub(crate) use graph::{DeclaredKind, Role};
pub use history::{ControllerHistory, RunningReconcile};
use keys::KeyTable;
pub(crate) use metrics::ControllerFamilies;
pub use phase::ControllerPhase;
pub(crate) use phase::{Controllers, Starting};
pub use record::{Outcome, ReconcileRecord};
pub use source::MapContext;

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
    /// The finalizer under which [`clean_up`](Self::clean_up) is called, as
    /// `Some("backup.example.com/bucket")`; without one it never is.
    const FINALIZER: Option<&'static str> = None;

    /// Reconciles one object. Called again after a while if it fails; must not rely on being
    /// called for every change, only after the last one.
    fn reconcile(
        &self,
        object: Arc<K>,
        ctx: Context<K>,
    ) -> impl Future<Output = Result<Next>> + Send;

    /// Cleans up after an object that is being deleted, in place of
    /// [`reconcile`](Self::reconcile), until that succeeds; see
    /// [`Builder::cleanup`], which does the same with a function.
    fn clean_up(
        &self,
        object: Arc<K>,
        ctx: Context<K>,
    ) -> impl Future<Output = Result<Next>> + Send {
        drop((object, ctx));
        std::future::ready(Ok(Next::Settled))
    }
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

impl<K: Send + Sync + 'static, R: Reconciler<K>> Reconciler<K> for Arc<R> {
    const FINALIZER: Option<&'static str> = R::FINALIZER;

    fn reconcile(
        &self,
        object: Arc<K>,
        ctx: Context<K>,
    ) -> impl Future<Output = Result<Next>> + Send {
        R::reconcile(self, object, ctx)
    }

    fn clean_up(
        &self,
        object: Arc<K>,
        ctx: Context<K>,
    ) -> impl Future<Output = Result<Next>> + Send {
        R::clean_up(self, object, ctx)
    }
}

/// Tells which objects concern a controller, without their type.
#[derive(Clone)]
struct Filter(Arc<Concerns>);

type Concerns = dyn Fn(&dyn ErasedObject) -> bool + Send + Sync;

impl Filter {
    /// Objects for which all of these say so. One of another type concerns nobody.
    fn new<K: AnyObject>(only: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |object| {
            let object: &dyn Any = object;
            object.downcast_ref().is_some_and(&only)
        }))
    }

    /// Both of them.
    fn and(self, other: Self) -> Self {
        Self(Arc::new(move |object| (self.0)(object) && (other.0)(object)))
    }

    fn concerns(&self, object: &dyn ErasedObject) -> bool {
        (self.0)(object)
    }

    /// The same for an item of a cache; one that cannot be decoded concerns nobody.
    fn lets_pass(&self, item: &Item<Untyped>) -> bool {
        item.erased().is_some_and(|object| self.concerns(&*object))
    }
}

/// Is called for every event of the reconciled kind.
type Observer<K> = Box<dyn Fn(&Event<K>) + Send>;

/// The queues of running controllers and what these did lately, for whoever wants to look.
#[derive(Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<Vec<View>>>);

/// A look into one controller.
#[derive(Clone)]
struct View {
    name: Arc<str>,
    concurrency: usize,
    keys: Arc<KeyTable>,
    /// Its part in a group that shares the keys, once it has one.
    seat: Arc<OnceLock<Seat>>,
}

impl Queues {
    fn add(&self, view: View) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(view);
    }

    /// What waits, runs and backs off in each queue, and why.
    pub(crate) fn dump(&self) -> Vec<Dump<ObjectKey>> {
        let views = self.views();
        let dump = |keys: &KeyTable| keys.queue.dump_with(|key| keys.causes.why(key));
        views.iter().map(|view| dump(&view.keys)).collect()
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
        let (running, recent, failing) = self.keys.history.shown();
        ControllerHistory {
            controller: self.name.to_string(),
            concurrency: self.concurrency,
            running,
            recent,
            failing,
            hot_loops: self.keys.own_writes.hot_loops.shown(),
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
    /// Is notified when the caches are synced; lets the workers begin.
    pub(crate) starting: Starting,
}

/// A controller, ready for a [`Manager`](crate::Manager).
pub struct Controller {
    name: Arc<str>,
    graph: Vec<DeclaredKind>,
    everywhere: bool,
    has_cleanup: bool,
    event_form: EventForm,
    field_manager: Option<Arc<str>>,
    /// Why it cannot run, if it was set up in a way that cannot work.
    invalid: Option<InvalidSettings>,
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
        Builder::new(kind)
    }

    /// The controller's name, which logs, metrics and Events say, and the field manager of its writes
    /// unless [that is another](Self::field_manager).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which kinds the controller has to do with, and how; its own comes first.
    pub(crate) fn graph(&self) -> &[DeclaredKind] {
        &self.graph
    }

    /// Reconciles on every replica, elected or not. Its writes are not fenced.
    #[must_use]
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// How the events of this controller are written; otherwise as [`EventForm::Series`].
    #[must_use]
    pub fn event_form(mut self, form: EventForm) -> Self {
        self.event_form = form;
        self
    }

    /// Writes under this field manager instead of the controller's name, as programs do whose controllers
    /// all go by the name of the program. Those that apply parts of the same object must not share one:
    /// each would take back what the others applied. And what was applied under one stays when a
    /// controller gets another.
    #[must_use]
    pub fn field_manager(mut self, manager: &str) -> Self {
        self.field_manager = Some(manager.into());
        self
    }

    pub(crate) fn writes_events_as(&self) -> EventForm {
        self.event_form
    }

    pub(crate) fn runs_everywhere(&self) -> bool {
        self.everywhere
    }

    /// Whether it puts finalizers on the objects that it reconciles.
    pub(crate) fn has_cleanup(&self) -> bool {
        self.has_cleanup
    }

    /// Fails if the controller was set up in a way that cannot work.
    pub(crate) fn check(&self) -> Result<(), InvalidSettings> {
        self.invalid.clone().map_or(Ok(()), Err)
    }

    /// Runs until the environment shuts down.
    pub(crate) async fn run(self, mut environment: Environment) {
        let manager = self.field_manager.unwrap_or(self.name);
        let recorder = environment.recorder.form(self.event_form);
        environment.recorder = recorder.field_manager(Arc::clone(&manager));
        environment.client = environment.client.with_field_manager(manager);
        (self.run)(environment).await;
    }
}
