//! The caches of a manager: one informer per kind, shared by all its controllers.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cache::Cache;
use crate::informer::Informer;
use crate::object::Object;
use crate::reflector::Selection;

/// Gives out informers, starting each kind's at the first request for it.
#[derive(Clone)]
pub struct Caches {
    client: kube::Client,
    informers: Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>,
}

impl Caches {
    /// No caches yet.
    pub fn new(client: kube::Client) -> Self {
        Self { client, informers: Arc::default() }
    }

    /// The informer of a kind. Starts it if nobody has asked for it before.
    pub fn informer<K: Object>(&self) -> Arc<Informer<K>> {
        let mut informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let informer = informers.entry(TypeId::of::<K>()).or_insert_with(|| {
            Arc::new(Informer::<K>::start(self.client.clone(), &(), Selection::default()))
        });
        let informer = Arc::clone(informer).downcast();
        informer.expect("an entry under a kind's TypeId is that kind's informer")
    }

    /// The cache of a kind, if it has been started.
    pub fn find<K: Object>(&self) -> Option<Cache<K>> {
        let informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let informer = informers.get(&TypeId::of::<K>())?.downcast_ref::<Informer<K>>()?;
        Some(informer.cache().clone())
    }
}
