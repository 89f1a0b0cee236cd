//! The caches of a manager: one informer per kind, shared by all its controllers.
//!
//! An informer lives as long as somebody holds it: a controller holds those of the kinds that
//! it named, and when the last one leaves, the watch ends and the memory is given back.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::cache::Cache;
use crate::informer::{CacheConfig, Informer};
use crate::metrics::Metrics;
use crate::object::Object;

/// Gives out informers, starting each kind's at the first request for it. Cheap to clone.
#[derive(Clone)]
pub struct Caches {
    client: kube::Client,
    metrics: Metrics,
    kinds: Arc<Mutex<HashMap<TypeId, Kind>>>,
}

/// What is known of one kind.
#[derive(Default)]
struct Kind {
    /// A `CacheConfig<K>`, if somebody chose one.
    config: Option<Box<dyn Any + Send>>,
    /// An `Informer<K>`, while somebody holds it.
    informer: Option<Weak<dyn Any + Send + Sync>>,
}

impl Caches {
    /// No caches yet.
    pub fn new(client: kube::Client, metrics: Metrics) -> Self {
        Self { client, metrics, kinds: Arc::default() }
    }

    /// Chooses how the objects of a kind are held. An informer that runs already keeps its way.
    pub fn configure<K: Object>(&self, config: CacheConfig<K>) {
        self.lock().entry(TypeId::of::<K>()).or_default().config = Some(Box::new(config));
    }

    /// How the objects of a kind are to be held.
    pub fn config<K: Object>(&self) -> CacheConfig<K> {
        self.lock().get(&TypeId::of::<K>()).and_then(Kind::config).unwrap_or_default()
    }

    /// The informer of a kind. Starts it unless somebody holds it already.
    pub fn informer<K: Object>(&self) -> Arc<Informer<K>> {
        let mut kinds = self.lock();
        let kind = kinds.entry(TypeId::of::<K>()).or_default();
        if let Some(informer) = kind.informer() {
            return informer;
        }
        let informer = Informer::<K>::builder(self.client.clone())
            .cache(kind.config().unwrap_or_default())
            .metrics(&self.metrics)
            .start();
        let informer = Arc::new(informer);
        let shared: Arc<dyn Any + Send + Sync> = Arc::clone(&informer) as _;
        kind.informer = Some(Arc::downgrade(&shared));
        informer
    }

    /// The cache of a kind, if somebody holds its informer.
    pub fn find<K: Object>(&self) -> Option<Cache<K>> {
        let kinds = self.lock();
        let informer = kinds.get(&TypeId::of::<K>())?.informer::<K>()?;
        Some(informer.cache().clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TypeId, Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kind {
    fn config<K: Object>(&self) -> Option<CacheConfig<K>> {
        self.config.as_ref()?.downcast_ref().cloned()
    }

    fn informer<K: Object>(&self) -> Option<Arc<Informer<K>>> {
        self.informer.as_ref()?.upgrade()?.downcast().ok()
    }
}
