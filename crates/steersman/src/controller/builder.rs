//! The builder of a controller: what it watches, whom that concerns, how it reconciles. This is
//! where the types of its kinds are known; what it makes of them, the [assembly](super::assembly),
//! has forgotten them.

use std::sync::Arc;
use std::time::Duration;

use kube::core::PartialObjectMeta;

use super::assembly::Assembly;
use super::cleanup::{Cleanup, Cleanups};
use super::deleted::{self, Deletions, Gone, Hook};
use super::mapping::Indexed;
use super::source::{self, Attach, IntoWatch, Reconciled, Source, Watch};
use super::typed::{Apart, OfReconciler, Typed};
use super::{Controller, DeclaredKind, Filter, Observer, Reconciler, Role};
use crate::caches::CachedKind;
use crate::client::{Client, Way};
use crate::codec::Codec;
use crate::context::Declared;
use crate::error::Result;
use crate::handler::{EnqueueRequestForOwner, EnqueueRequestsFromMapFunc, EventHandler, Request};
use crate::informer::Event;
use crate::kind::Kind;
use crate::object::{AnyObject, Object, ObjectKey};
use crate::predicate::Predicate;
use crate::shard::Sharding;
use crate::workqueue::{ExponentialBackoff, Priority, RateLimiter};

/// A controller that still lacks its reconciler.
#[must_use = "a controller does nothing until it has a reconciler and a manager runs it"]
pub struct Builder<K> {
    pub(super) name: String,
    pub(super) kind: Kind<K>,
    pub(super) sources: Vec<Attach>,
    /// The kinds whose caches this controller reads.
    pub(super) declared: Declared,
    pub(super) graph: Vec<DeclaredKind>,
    /// The indexes of the reconciled kind.
    pub(super) indexes: Vec<Indexed>,
    pub(super) predicates: Vec<Box<dyn Predicate<K>>>,
    pub(super) only: Option<Filter>,
    pub(super) observers: Vec<Observer<K>>,
    pub(super) priority: Option<Priority>,
    pub(super) resync: Option<Duration>,
    pub(super) concurrency: usize,
    pub(super) limiter: Box<dyn RateLimiter<ObjectKey>>,
    pub(super) fair: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) cleanups: Cleanups,
    pub(super) on_deleted: Option<Hook>,
    pub(super) sharding: Option<Sharding>,
    pub(super) status_way: Way,
}

impl<K: AnyObject> Builder<K> {
    /// A controller of this kind that is only woken by it.
    pub(super) fn new(kind: &Kind<K>) -> Self {
        let mut declared = Declared::default();
        declared.insert(kind);
        Self {
            name: kind.name().to_lowercase(),
            kind: kind.clone(),
            sources: Vec::new(),
            declared,
            graph: vec![DeclaredKind::new(kind, Role::Reconciled)],
            indexes: Vec::new(),
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
            status_way: Way::Patch,
        }
    }

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
    /// an object is updated, both what it was and what it is are asked. A name without a namespace
    /// is in the namespace of the object that changed. Where the object does not say whom it
    /// concerns, see [`watches_referenced`](Self::watches_referenced).
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
        self.sources.push(source::silent(&watch));
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

    pub(super) fn declare<W: IntoWatch>(&mut self, role: Role, watch: W) -> Watch<W::Object> {
        let watch = watch.into_watch();
        self.declared.insert(watch.kind());
        self.graph.push(DeclaredKind::new(watch.kind(), role));
        watch
    }

    /// Wakes only for the events of the reconciled kind that matter; see
    /// [`predicate`](crate::predicate). Of several, all must let an event pass.
    pub fn when(mut self, predicate: impl Predicate<K>) -> Self {
        self.predicates.push(Box::new(predicate));
        self
    }

    /// Ignores the objects of the reconciled kind that are none of this controller's business,
    /// whatever wakes them: unlike [`when`](Self::when), which is about events of that kind, this
    /// is also asked where a child, another source or a timer names the object. Several calls
    /// add up.
    pub fn only(mut self, concerns: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        let concerns = Filter::new(concerns);
        self.only = Some(match self.only.take() {
            Some(others) => others.and(concerns),
            None => concerns,
        });
        self
    }

    /// Is called for every event of the reconciled kind, before anything is filtered out, in the
    /// order of the events. For state of the controller's own that must follow all objects; it
    /// must not block.
    pub fn observes(mut self, observer: impl Fn(&Event<K>) + Send + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Is called for every object of the reconciled kind that is gone, with its last state, whatever
    /// `when` says. Called again with a growing delay if it fails; until it succeeds, an object
    /// that took the same name waits.
    ///
    /// It is for what can be forgotten: entries of a table, metrics. Deletions while the
    /// controller was not running are not noticed. What must not be missed needs a
    /// [`cleanup`](Self::cleanup).
    pub fn on_deleted<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Gone<K>, Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.on_deleted = Some(deleted::hook(hook));
        self
    }

    /// Cleans up before an object goes: `.cleanup("shop.example.com/bucket", empty_the_bucket)`.
    ///
    /// Every object gets this finalizer before it is reconciled for the first time. When it is
    /// deleted, `cleanup` is called in place of the reconciler until it succeeds; then the
    /// finalizer goes, and with the last one the object. Several cleanups run in the order in
    /// which they were added. An object that was already being deleted when it was first seen
    /// gets neither a finalizer nor a call of anything, as nothing was done for it.
    ///
    /// Objects that [`only`](Self::only) leaves out are left alone here too: one that leaves
    /// while it has the finalizer keeps it, and must be released by hand.
    ///
    /// # Panics
    /// If the name is not a domain, a slash and a name, or was added before.
    #[track_caller]
    pub fn cleanup(mut self, finalizer: &str, cleanup: impl Cleanup<K>) -> Self {
        let typed = Typed::new(self.kind.clone(), Arc::new(cleanup));
        self.cleanups.add(finalizer, Box::new(Apart(typed)));
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

    /// Writes the status by an update of the whole instead of a patch of what changed: for a role
    /// that allows no more than `update`. Then nobody may have changed the status since it was read,
    /// or the reconcile is tried again.
    pub fn updates_status(mut self) -> Self {
        self.status_way = Way::Update;
        self
    }

    /// Completes the controller.
    #[track_caller]
    pub fn reconcile<R: Reconciler<K>>(mut self, reconciler: R) -> Controller {
        let reconciler = Arc::new(reconciler);
        self.with_cleanup_of(&reconciler);
        let deletions = self.on_deleted.map(|hook| Arc::new(Deletions::new(hook)));
        let own = source::reconciled(Reconciled {
            kind: self.kind.clone(),
            observers: self.observers,
            predicates: self.predicates,
            only: self.only.clone(),
            priority: self.priority,
            resync: self.resync,
            deletions: deletions.clone(),
        });
        let assembly = Assembly {
            name: self.name.into(),
            kind: self.kind.erased(),
            cached: CachedKind::of(&self.kind),
            codec: Codec::of::<K>(),
            sources: std::iter::once(own).chain(self.sources).collect(),
            declared: self.declared,
            indexes: self.indexes,
            only: self.only,
            concurrency: self.concurrency,
            limiter: self.limiter,
            fair: self.fair,
            timeout: self.timeout,
            cleanups: self.cleanups,
            deletions,
            sharding: self.sharding,
            status_way: self.status_way,
            reconciler: Box::new(Typed::new(self.kind, reconciler)),
        };
        assembly.into_controller(self.graph)
    }

    /// Adds the cleanup that a reconciler has itself.
    #[track_caller]
    fn with_cleanup_of<R: Reconciler<K>>(&mut self, reconciler: &Arc<R>) {
        if let Some(finalizer) = R::FINALIZER {
            let typed = Typed::new(self.kind.clone(), Arc::clone(reconciler));
            self.cleanups.add(finalizer, Box::new(OfReconciler(typed)));
        }
    }
}
