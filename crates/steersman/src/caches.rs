//! The caches of a manager: one informer per kind, shared by all its controllers.
//!
//! An informer lives as long as somebody holds it: a controller holds those of the kinds that
//! it named, and when the last one leaves, the watch ends and the memory is given back.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::cache::{Cache, Form};
use crate::informer::{CacheConfig, Informer};
use crate::kind::{Kind, KindId};
use crate::metrics::Metrics;
use crate::object::{AnyObject, Object};

/// Gives out informers, starting each kind's at the first request for it. Cheap to clone.
#[derive(Clone)]
pub struct Caches {
    shared: Arc<Shared>,
}

/// What all clones share.
struct Shared {
    client: kube::Client,
    metrics: Metrics,
    kinds: Mutex<HashMap<KindId, Slot>>,
    /// What kinds for which nothing is said are restricted to; all namespaces if empty.
    namespaces: Mutex<BTreeSet<Arc<str>>>,
}

/// What is known of one kind.
#[derive(Default)]
struct Slot {
    /// A `CacheConfig<K>`, if somebody chose one.
    config: Option<Box<dyn Any + Send>>,
    /// An `Informer<K>`, while somebody holds it.
    informer: Option<Weak<dyn Any + Send + Sync>>,
}

impl Caches {
    /// No caches yet.
    pub fn new(client: kube::Client, metrics: Metrics) -> Self {
        let (kinds, namespaces) = Default::default();
        Self { shared: Arc::new(Shared { client, metrics, kinds, namespaces }) }
    }

    /// Restricts the caches of all kinds that live in namespaces to these, unless the kind's own
    /// configuration names others. Several calls add up.
    pub fn restrict_to(&self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) {
        let mut known = self.shared.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(namespaces.into_iter().map(Into::into));
    }

    /// Chooses how the objects of a kind are held. An informer that runs already keeps its way.
    pub fn configure<K: Object>(&self, config: CacheConfig<K>) {
        self.configure_of(&Kind::of(), config);
    }

    /// The same for a kind that may be known only at run time.
    pub(crate) fn configure_of<K: AnyObject>(&self, kind: &Kind<K>, config: CacheConfig<K>) {
        self.lock().entry(kind.id()).or_default().config = Some(Box::new(config));
    }

    /// How the objects of a kind are to be held.
    pub(crate) fn config<K: Object>(&self) -> CacheConfig<K> {
        self.config_of(&Kind::of())
    }

    /// The same for a kind that may be known only at run time.
    pub(crate) fn config_of<K: AnyObject>(&self, kind: &Kind<K>) -> CacheConfig<K> {
        self.lock().get(&kind.id()).and_then(Slot::config).unwrap_or_else(|| default_config(kind))
    }

    /// The informer of a kind. Starts it unless somebody holds it already.
    pub fn informer<K: Object>(&self) -> Arc<Informer<K>> {
        self.informer_of(&Kind::of())
    }

    /// The informer of a kind that may be known only at run time.
    pub fn informer_of<K: AnyObject>(&self, kind: &Kind<K>) -> Arc<Informer<K>> {
        let mut kinds = self.lock();
        let slot = kinds.entry(kind.id()).or_default();
        if let Some(informer) = slot.informer() {
            return informer;
        }
        let config = slot.config().unwrap_or_else(|| default_config(kind));
        let config = self.restricted(kind, config);
        let client = self.shared.client.clone();
        let informer = Informer::<K>::builder_for(client, kind.dynamic_type().clone())
            .cache(config)
            .metrics(&self.shared.metrics)
            .start();
        let informer = Arc::new(informer);
        let shared: Arc<dyn Any + Send + Sync> = Arc::clone(&informer) as _;
        slot.informer = Some(Arc::downgrade(&shared));
        informer
    }

    /// The cache of a kind, if somebody holds its informer.
    pub fn find<K: Object>(&self) -> Option<Cache<K>> {
        self.find_of(&Kind::of())
    }

    /// The same for a kind that may be known only at run time.
    pub fn find_of<K: AnyObject>(&self, kind: &Kind<K>) -> Option<Cache<K>> {
        let kinds = self.lock();
        let informer = kinds.get(&kind.id())?.informer::<K>()?;
        Some(informer.cache().clone())
    }

    /// The configuration, with the namespaces that it is restricted to unless it names some.
    fn restricted<K: AnyObject>(&self, kind: &Kind<K>, config: CacheConfig<K>) -> CacheConfig<K> {
        if !kind.is_namespaced() {
            return config.everywhere();
        }
        if !config.restriction().namespaces.is_empty() {
            return config;
        }
        let namespaces =
            self.shared.namespaces.lock().unwrap_or_else(PoisonError::into_inner).clone();
        config.namespaces(namespaces)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KindId, Slot>> {
        self.shared.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn config<K: AnyObject>(&self) -> Option<CacheConfig<K>> {
        self.config.as_ref()?.downcast_ref().cloned()
    }

    fn informer<K: AnyObject>(&self) -> Option<Arc<Informer<K>>> {
        self.informer.as_ref()?.upgrade()?.downcast().ok()
    }
}

/// How a kind is held for which nothing is said. Documents and metadata take far more memory as
/// trees than as text, whatever the size of the type that stands for them.
fn default_config<K: AnyObject>(kind: &Kind<K>) -> CacheConfig<K> {
    let config = CacheConfig::default();
    match kind.dynamic_names().is_some() || kind.is_metadata_only() {
        true => config.form(Form::COMPACT),
        false => config,
    }
}
