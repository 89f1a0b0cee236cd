//! The informer: a reflector, a cache that follows it, and handlers that hear of each change.
//!
//! One task takes deltas in order and in batches, updates the cache, and only then tells the
//! handlers, so that whoever is told finds the change in the cache. Each handler has a queue and
//! a task of its own: a slow one delays nobody, and what waits for it is bounded, because
//! beyond a number events of one object are merged. A handler that joins late hears of every
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
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use crate::cache::Event;
use crate::cache::{self, Cache, Decoder, Form, Transform};
use crate::delta_queue::{self, Mode};
use crate::metrics::Metrics;
use crate::object::Cacheable;
use crate::reflector::{Options, Reflector, Selection};
pub(crate) use collector::Informers;
use distributor::Distributor;
use handler::Joiner;
pub use handler::{HandlerOptions, Registration};
use status::Observed;
pub use status::{HandlerStatus, InformerStatus};

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
    selection: Selection,
    options: Options,
    config: CacheConfig<K>,
    metrics: Option<Metrics>,
}

/// How the cache of a kind holds its objects.
pub struct CacheConfig<K> {
    form: Form,
    strip_managed_fields: bool,
    transform: Option<Transform<K>>,
}

impl<K> Default for CacheConfig<K> {
    fn default() -> Self {
        Self { form: Form::of::<K>(), strip_managed_fields: false, transform: None }
    }
}

impl<K> Clone for CacheConfig<K> {
    fn clone(&self) -> Self {
        let Self { form, strip_managed_fields, transform } = self;
        Self {
            form: *form,
            strip_managed_fields: *strip_managed_fields,
            transform: transform.clone(),
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
}

impl<K: Cacheable> Builder<K> {
    /// Only the objects that this selects.
    pub fn selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// How to list and watch.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// How objects are held.
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
        let kind = K::kind(&self.dynamic_type).into_owned();
        let mut decoder = Decoder::new(self.config.form);
        decoder.strip_managed_fields = self.config.strip_managed_fields;
        decoder.transform = self.config.transform;
        let undecodable = decoder.undecodable();
        let (writer, cache) = cache::channel();
        let (send, deltas) = delta_queue::channel(Mode::InOrder { capacity: DELTAS_MAX });
        let queue = send.observer();
        let (joining, joiners) = mpsc::channel(JOINING_MAX);
        let reflector = Reflector::with_decoder::<K>(
            self.client,
            &self.dynamic_type,
            self.selection,
            decoder,
            send,
        )
        .options(self.options);
        let stop = CancellationToken::new();
        let observed = Arc::new(Observed {
            kind,
            group: K::group(&self.dynamic_type).into_owned(),
            form: self.config.form,
            cache: cache.clone(),
            reflector: reflector.status(),
            queue,
            handlers: std::sync::Mutex::default(),
            merged_before: AtomicU64::new(0),
            undecodable: Box::new(undecodable),
        });
        if let Some(metrics) = &self.metrics {
            metrics.informers.add(Arc::downgrade(&observed) as _);
        }
        let distributor =
            Distributor::new(writer, cache.clone(), Arc::clone(&observed), stop.clone());
        // One task for both: what the reflector learns is in the cache without a detour through
        // the scheduler.
        let both = async { tokio::join!(reflector.run(), distributor.run(deltas, joiners)) };
        tokio::spawn(stop.clone().run_until_cancelled_owned(both));
        Informer { cache, joining, observed, _stop: stop.drop_guard() }
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
            selection: Selection::default(),
            options: Options::default(),
            config: CacheConfig::default(),
            metrics: None,
        }
    }

    /// The cache that this informer fills.
    pub fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Adds a handler. It first hears of every object that is there, as initial additions. It
    /// should only note what changed; one that blocks must [say so](HandlerOptions::blocking).
    /// It stays until it is [removed](Registration::remove) or the informer goes.
    pub async fn add_handler(
        &self,
        handler: impl FnMut(&Event<K>) + Send + 'static,
    ) -> Registration {
        self.add_handler_with(HandlerOptions::default(), handler).await
    }

    /// Adds a handler that hears of every object again from time to time.
    pub async fn add_resynced_handler(
        &self,
        every: Duration,
        handler: impl FnMut(&Event<K>) + Send + 'static,
    ) -> Registration {
        let options = HandlerOptions { resync: Some(every), ..HandlerOptions::default() };
        self.add_handler_with(options, handler).await
    }

    /// Adds a handler.
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
