//! The informer: a reflector, a cache that follows it, and handlers that are called with each change.
//!
//! One task takes deltas in order and in batches, updates the cache, and only then calls the
//! handlers, so that they find the change in the cache. Each handler has a queue and
//! a task of its own: a slow one delays nobody, and what waits for it is bounded, because
//! beyond a number events of one object are merged. A handler that joins late gets every
//! present object first; one that panics loses the event, is reported, and goes on.
//!
//! ```
//! use k8s_openapi::api::core::v1::Namespace;
//! use steersman::informer::{Event, Informer};
//! use steersman::workqueue::WorkQueue;
//!
//! steersman_testkit::run(|cluster| async move {
//!     let client: kube::Client = cluster.client().kube().clone(); // or `try_default().await?`
//!     let namespaces = Informer::<Namespace>::builder(client).start();
//!     let queue = WorkQueue::default();
//!     let enqueue = queue.clone();
//!     let handler = namespaces.add_handler(move |event: &Event<Namespace>| {
//!         enqueue.add(event.object().key().clone());
//!     });
//!     handler.await.synced().await;
//!     let key = queue.get().await.expect("a cluster has namespaces");
//!     assert!(namespaces.cache().get(&key).is_some());
//!     queue.done(&key);
//! });
//! ```

mod collector;
mod cooling;
mod distributor;
mod handler;
mod status;

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use crate::cache::Event;
use crate::cache::{self, Cache, Decoder, Form, Restriction, Transform, Untyped};
use crate::codec::Codec;
use crate::delta_queue::{self, Mode};
use crate::metrics::Metrics;
use crate::object::Cacheable;
use crate::reflector::{Options, Reflector, Selection, WatchedResource};
pub(crate) use collector::Informers;
use cooling::Cooling;
use distributor::{Distributor, Feed};
pub(crate) use handler::{AsyncHandler, PlainHandler};
use handler::{Handler, Joiner};
pub use handler::{HandlerOptions, Registration};
pub use status::{HandlerStatus, InformerStatus};
use status::{Observed, ObservedPart};

/// Deltas waiting between the reflector and the cache; then the reflector stops reading. A fraction of
/// the [objects that stay decoded](crate::cache::Form::Compact): further ahead, what it decodes would
/// be forgotten before it is given to the handlers.
const DELTAS_MAX: usize = 128;
/// Requests to read an object again that wait to be looked at; more are dropped, since whoever asked
/// will ask again.
const REREADS_MAX: usize = 64;
/// Handlers joining at the same time; more wait their turn.
const JOINING_MAX: usize = 64;

/// Keeps a cache of one kind up to date for as long as it or a clone of it lives.
pub struct Informer<K> {
    cache: Cache<K>,
    running: Arc<Running>,
}

/// An informer of any kind.
pub(crate) struct Running {
    cache: Cache<Untyped>,
    joining: mpsc::Sender<Joiner>,
    observed: Arc<Observed>,
    /// Stops every task of this informer.
    _stop: DropGuard,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.running))
    }
}

/// An informer that has not started yet.
#[must_use = "an informer does nothing until it is started"]
pub struct Builder<K: Cacheable> {
    client: kube::Client,
    dynamic_type: K::DynamicType,
    options: Options,
    config: CacheConfig<K>,
    metrics: Option<Metrics>,
}

/// How the cache of a kind holds its objects.
pub struct CacheConfig<K> {
    settings: CacheSettings,
    object: PhantomData<fn() -> K>,
}

/// The same without the type of the kind.
#[derive(Clone)]
pub(crate) struct CacheSettings {
    pub(crate) form: Form,
    strip_managed_fields: bool,
    transform: Option<Transform>,
    pub(crate) restriction: Restriction,
}

impl<K> Default for CacheConfig<K> {
    fn default() -> Self {
        Self::of(CacheSettings {
            form: Form::of::<K>(),
            strip_managed_fields: false,
            transform: None,
            restriction: Restriction::default(),
        })
    }
}

impl<K> Clone for CacheConfig<K> {
    fn clone(&self) -> Self {
        Self::of(self.settings.clone())
    }
}

impl<K> CacheConfig<K> {
    pub(crate) fn of(settings: CacheSettings) -> Self {
        Self { settings, object: PhantomData }
    }

    pub(crate) fn into_settings(self) -> CacheSettings {
        self.settings
    }

    /// Holds objects in this form; otherwise in the one that [suits](Form::of) the kind.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.settings.form = form;
        self
    }

    /// Drops `metadata.managedFields`, which take half of a typed object and which few read.
    #[must_use]
    pub fn strip_managed_fields(mut self) -> Self {
        self.settings.strip_managed_fields = true;
        self
    }

    /// Calls `change` with every object on its way into the cache, to drop what nobody reads.
    /// It must leave name, namespace, uid, version, labels and owners alone. Who then updates such an
    /// object as a whole also drops it on the server: patch or apply it instead.
    #[must_use]
    pub fn transform(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Cacheable + Serialize,
    {
        self.settings.transform = Some(Transform::new(change));
        self
    }

    /// Holds the objects of these namespaces only, each watched by itself; the empty name stands for
    /// all. Several calls add up. Kinds without namespaces are not affected.
    #[must_use]
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Self {
        self.settings.restriction.namespaces.extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// Holds only objects whose labels match, as in `kubectl -l`: `labels("app=web,!legacy")`.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.settings.restriction.labels = Some(selector.into());
        self
    }

    /// Holds only objects whose fields match, as in `kubectl --field-selector`:
    /// `fields("spec.nodeName=n1")`.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.settings.restriction.fields = Some(selector.into());
        self
    }
}

impl<K: Cacheable> Builder<K> {
    /// Only the objects that this selects.
    pub fn selection(mut self, selection: Selection) -> Self {
        let Selection { namespace, labels, fields } = selection;
        let namespaces = namespace.map(Into::into).into_iter().collect();
        self.config.settings.restriction = Restriction { namespaces, labels, fields };
        self
    }

    /// How to list and watch.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// How objects are held, and which.
    pub fn cache(mut self, config: CacheConfig<K>) -> Self {
        self.config = config;
        self
    }

    /// Holds objects in this form; otherwise in the one that [suits](Form::of) the kind.
    pub fn form(mut self, form: Form) -> Self {
        self.config = self.config.form(form);
        self
    }

    /// Counts here what the informer does. Informers of one kind are added up.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Starts to list and watch.
    pub fn start(self) -> Informer<K> {
        let kind = WatchedKind::of::<K>(&self.dynamic_type);
        let settings = &self.config.settings;
        Informer::of(start(&self.client, &kind, settings, &self.options, self.metrics.as_ref()))
    }
}

/// A kind to be listed and watched, without its type.
#[derive(Clone)]
pub(crate) struct WatchedKind {
    resource: WatchedResource,
    group: String,
    codec: Codec,
}

impl WatchedKind {
    pub(crate) fn of<K: Cacheable>(dynamic_type: &K::DynamicType) -> Self {
        Self {
            resource: WatchedResource::of::<K>(dynamic_type),
            group: K::group(dynamic_type).into_owned(),
            codec: Codec::of::<K>(),
        }
    }

    /// The kind's name, as `Deployment`.
    pub(crate) fn name(&self) -> &str {
        &self.resource.kind
    }
}

/// Starts to list and watch a kind.
pub(crate) fn start(
    client: &kube::Client,
    kind: &WatchedKind,
    settings: &CacheSettings,
    options: &Options,
    metrics: Option<&Metrics>,
) -> Arc<Running> {
    let restriction = settings.restriction.clone().resolved();
    let (writer, cache) = cache::restricted(restriction.clone());
    let (joining, joiners) = mpsc::channel(JOINING_MAX);
    let mut reflectors = Vec::new();
    let mut feeds = Vec::new();
    let mut rereads = Vec::new();
    let mut warmth = Vec::new();
    // Each namespace that is watched by itself has a reflector of its own.
    for selection in restriction.selections() {
        let mut decoder = Decoder::new(kind.codec, settings.form);
        decoder.strip_managed_fields = settings.strip_managed_fields;
        decoder.transform.clone_from(&settings.transform);
        let (send, deltas) = delta_queue::channel(Mode::InOrder { capacity: DELTAS_MAX });
        let queue = send.observer();
        let namespace: Option<Arc<str>> = selection.namespace.as_deref().map(Into::into);
        let undecodable = Arc::new(decoder.undecodable());
        warmth.extend(decoder.warmth());
        let resource = kind.resource.clone();
        let (request, requests) = mpsc::channel(REREADS_MAX);
        decoder.reread_by(request.clone());
        rereads.push((namespace.clone(), request));
        let reflector = Reflector::with_decoder(client.clone(), resource, selection, decoder, send)
            .options(options.clone())
            .reread_for(requests);
        let observed = ObservedPart { reflector: reflector.status(), queue, undecodable };
        reflectors.push(reflector.run());
        feeds.push(Feed { namespace, deltas, observed });
    }
    cache.reread_by(rereads);
    let stop = CancellationToken::new();
    let observed = Arc::new(Observed {
        kind: kind.resource.kind.clone(),
        group: kind.group.clone(),
        form: settings.form,
        cache: cache.clone(),
        parts: feeds.iter().map(|feed| feed.observed.clone()).collect(),
        handlers: std::sync::Mutex::default(),
        merged_before: AtomicU64::new(0),
    });
    if let Some(metrics) = metrics {
        metrics.families::<Informers>().add(metrics.cluster(), Arc::downgrade(&observed));
    }
    let distributor = Distributor::new(writer, cache.clone(), Arc::clone(&observed), stop.clone());
    let cooling = Cooling::new(warmth);
    // One task for all: what a reflector learns is in the cache without a detour through
    // the scheduler.
    let reflectors = futures::future::join_all(reflectors);
    let all = async { tokio::join!(reflectors, distributor.run(feeds, joiners, cooling)) };
    tokio::spawn(stop.clone().run_until_cancelled_owned(all));
    Arc::new(Running { cache, joining, observed, _stop: stop.drop_guard() })
}

impl<K> Informer<K> {
    pub(crate) fn of(running: Arc<Running>) -> Self {
        Self { cache: running.cache.clone().cast(), running }
    }
}

impl Running {
    /// The cache that this informer fills.
    pub(crate) fn cache(&self) -> &Cache<Untyped> {
        &self.cache
    }

    /// Adds a handler of events whose type has been forgotten.
    pub(crate) async fn add_handler(
        &self,
        options: HandlerOptions,
        handler: PlainHandler,
    ) -> Registration {
        self.join(options, Handler::Plain(handler)).await
    }

    /// The same for a handler that may wait.
    pub(crate) async fn add_async_handler(&self, handler: AsyncHandler) -> Registration {
        self.join(HandlerOptions::default(), Handler::Async(handler)).await
    }

    async fn join(&self, options: HandlerOptions, handler: Handler) -> Registration {
        let (joiner, registration) = handler::join(options, handler);
        // Fails only if the distributor has ended, which it does only with us.
        let _ = self.joining.send(joiner).await;
        registration
    }
}

impl<K: Cacheable> Informer<K> {
    /// An informer of a kind that is known at compile time.
    pub fn builder(client: kube::Client) -> Builder<K>
    where
        K::DynamicType: Default,
    {
        Self::builder_for(client, K::DynamicType::default())
    }

    /// An informer of a kind that is known at run time.
    pub fn builder_for(client: kube::Client, dynamic_type: K::DynamicType) -> Builder<K> {
        Builder {
            client,
            dynamic_type,
            options: Options::default(),
            config: CacheConfig::default(),
            metrics: None,
        }
    }

    /// The cache that this informer fills.
    pub fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Adds a handler. It first gets every object that is there, as initial additions. It
    /// should only note what changed; one that blocks must [say so](HandlerOptions::blocking).
    /// It stays until it is [removed](Registration::remove) or the informer goes.
    pub async fn add_handler(
        &self,
        handler: impl FnMut(&Event<K>) + Send + 'static,
    ) -> Registration {
        self.add_handler_with(HandlerOptions::default(), handler).await
    }

    /// Adds a handler with options, such as a resync period.
    pub async fn add_handler_with(
        &self,
        options: HandlerOptions,
        mut handler: impl FnMut(&Event<K>) + Send + 'static,
    ) -> Registration {
        let handler = move |event: &Event<Untyped>| handler(&event.clone().cast());
        self.running.add_handler(options, Box::new(handler)).await
    }

    /// How the informer is doing.
    pub fn status(&self) -> InformerStatus {
        self.running.observed.status()
    }
}

#[cfg(test)]
mod tests;
