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
mod distributor;
mod handler;
mod status;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use crate::cache::Event;
use crate::cache::{self, Cache, Decoder, Form, Restriction, Transform};
use crate::delta_queue::{self, Mode};
use crate::metrics::Metrics;
use crate::object::Cacheable;
use crate::reflector::{Options, Reflector, Selection};
pub(crate) use collector::Informers;
use distributor::{Distributor, Feed};
use handler::Joiner;
pub use handler::{HandlerOptions, Registration};
pub use status::{HandlerStatus, InformerStatus};
use status::{Observed, ObservedPart};

/// Deltas waiting between the reflector and the cache; then the reflector stops reading.
const DELTAS_MAX: usize = 1024;
/// Handlers joining at the same time; more wait their turn.
const JOINING_MAX: usize = 64;

/// Keeps a cache of one kind up to date for as long as it lives.
pub struct Informer<K> {
    cache: Cache<K>,
    joining: mpsc::Sender<Joiner<K>>,
    observed: Arc<Observed<K>>,
    /// Stops every task of this informer.
    _stop: DropGuard,
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
    form: Form,
    strip_managed_fields: bool,
    transform: Option<Transform<K>>,
    restriction: Restriction,
}

impl<K> Default for CacheConfig<K> {
    fn default() -> Self {
        Self {
            form: Form::of::<K>(),
            strip_managed_fields: false,
            transform: None,
            restriction: Restriction::default(),
        }
    }
}

impl<K> Clone for CacheConfig<K> {
    fn clone(&self) -> Self {
        let Self { form, strip_managed_fields, transform, restriction } = self;
        Self {
            form: *form,
            strip_managed_fields: *strip_managed_fields,
            transform: transform.clone(),
            restriction: restriction.clone(),
        }
    }
}

impl<K> CacheConfig<K> {
    /// Holds objects in this form; otherwise in the one that [suits](Form::of) the kind.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Drops `metadata.managedFields`, which take half of a typed object and which few read.
    #[must_use]
    pub fn strip_managed_fields(mut self) -> Self {
        self.strip_managed_fields = true;
        self
    }

    /// Calls `change` with every object on its way into the cache, to drop what nobody reads.
    /// It must leave name, namespace, uid, version, labels and owners alone.
    #[must_use]
    pub fn transform(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Serialize,
    {
        self.transform = Some(Transform::new(change));
        self
    }

    /// Holds the objects of these namespaces only, each watched by itself. Several calls add up.
    /// Kinds without namespaces are not affected.
    #[must_use]
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Self {
        self.restriction.namespaces.extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// Holds only objects whose labels match, as in `kubectl -l`: `labels("app=web,!legacy")`.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.restriction.labels = Some(selector.into());
        self
    }

    /// Holds only objects whose fields match, as in `kubectl --field-selector`:
    /// `fields("spec.nodeName=n1")`.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.restriction.fields = Some(selector.into());
        self
    }

    /// The same for objects that live in no namespace.
    pub(crate) fn everywhere(mut self) -> Self {
        self.restriction.namespaces.clear();
        self
    }

    /// Which objects are held.
    pub(crate) fn restriction(&self) -> &Restriction {
        &self.restriction
    }
}

impl<K: Cacheable> Builder<K> {
    /// Only the objects that this selects.
    pub fn selection(mut self, selection: Selection) -> Self {
        let Selection { namespace, labels, fields } = selection;
        let namespaces = namespace.map(Into::into).into_iter().collect();
        self.config.restriction = Restriction { namespaces, labels, fields };
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
        let decoders = self.decoders();
        let (writer, cache) = cache::restricted(self.config.restriction.clone());
        let (joining, joiners) = mpsc::channel(JOINING_MAX);
        let (reflectors, feeds): (Vec<_>, Vec<_>) = decoders
            .into_iter()
            .map(|(selection, decoder)| self.reflector(selection, decoder))
            .unzip();
        let stop = CancellationToken::new();
        let observed = Arc::new(Observed {
            kind: K::kind(&self.dynamic_type).into_owned(),
            group: K::group(&self.dynamic_type).into_owned(),
            form: self.config.form,
            cache: cache.clone(),
            parts: feeds.iter().map(|feed| feed.observed.clone()).collect(),
            handlers: std::sync::Mutex::default(),
            merged_before: AtomicU64::new(0),
        });
        if let Some(metrics) = &self.metrics {
            metrics.families::<Informers>().add(metrics.cluster(), Arc::downgrade(&observed) as _);
        }
        let distributor =
            Distributor::new(writer, cache.clone(), Arc::clone(&observed), stop.clone());
        // One task for all: what a reflector learns is in the cache without a detour through
        // the scheduler.
        let reflectors = futures::future::join_all(reflectors.into_iter().map(Reflector::run));
        let all = async { tokio::join!(reflectors, distributor.run(feeds, joiners)) };
        tokio::spawn(stop.clone().run_until_cancelled_owned(all));
        Informer { cache, joining, observed, _stop: stop.drop_guard() }
    }

    /// What is to be watched, one by one, and how each is decoded.
    fn decoders(&self) -> Vec<(Selection, Decoder<K>)> {
        let decoder = || {
            let mut decoder = Decoder::new(self.config.form);
            decoder.strip_managed_fields = self.config.strip_managed_fields;
            decoder.transform = self.config.transform.clone();
            decoder
        };
        let selections = self.config.restriction.selections().into_iter();
        selections.map(|selection| (selection, decoder())).collect()
    }

    fn reflector(
        &self,
        selection: Selection,
        decoder: Decoder<K>,
    ) -> (Reflector<Decoder<K>>, Feed<K>) {
        let (send, deltas) = delta_queue::channel(Mode::InOrder { capacity: DELTAS_MAX });
        let queue = send.observer();
        let namespace = selection.namespace.as_deref().map(Into::into);
        let undecodable = Arc::new(decoder.undecodable());
        let client = self.client.clone();
        let reflector =
            Reflector::with_decoder::<K>(client, &self.dynamic_type, selection, decoder, send)
                .options(self.options.clone());
        let observed = ObservedPart { reflector: reflector.status(), queue, undecodable };
        (reflector, Feed { namespace, deltas, observed })
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
        handler: impl FnMut(&Event<K>) + Send + 'static,
    ) -> Registration {
        let (joiner, registration) = handler::join(options, Box::new(handler));
        // Fails only if the distributor has ended, which it does only with us.
        let _ = self.joining.send(joiner).await;
        registration
    }

    /// How the informer is doing.
    pub fn status(&self) -> InformerStatus {
        self.observed.status()
    }
}

#[cfg(test)]
mod tests;
