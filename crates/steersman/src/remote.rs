//! Another cluster that controllers of a manager work with.

use std::fmt;
use std::sync::Arc;

use crate::cache::Cache;
use crate::caches::Caches;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::informer::CacheConfig;
use crate::metrics::Metrics;
use crate::object::Object;

/// Another cluster: a client of its own, and caches of its own that its watchers share. Made by
/// [`Manager::cluster`](crate::Manager::cluster). Cheap to clone; reconcilers keep a clone.
///
/// Caches live as long as a controller watches or reads them, here as in the manager's own
/// cluster, and are part of what [`ready`](crate::manager::Running::ready) waits for.
#[derive(Clone)]
pub struct RemoteCluster {
    name: Arc<str>,
    client: Client,
    caches: Caches,
}

impl RemoteCluster {
    pub(crate) fn new(name: &str, client: kube::Client, metrics: &Metrics) -> Self {
        Self {
            name: name.into(),
            caches: Caches::new(client.clone(), metrics.of_cluster(name)),
            client: Client::new(client, "steersman"),
        }
    }

    /// Its name: what metrics and the debug page call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads and writes on its server. Such writes are not fenced by this manager's election.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its caches.
    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The cache of a kind that a controller watches or reads in this cluster.
    pub fn cache<K: Object>(&self) -> Result<Cache<K>> {
        self.caches.find().ok_or_else(|| {
            let kind = K::kind(&());
            Error::terminal(format!(
                "no controller watches {kind} objects of cluster {:?}: add `.watches_in(…)` or \
                 `.reads_in(…)` to one, or read from the server with `client()`",
                self.name
            ))
        })
    }

    /// Chooses how the cache holds the objects of a kind, before a controller begins to.
    #[must_use]
    pub fn configured<K: Object>(
        self,
        configure: impl FnOnce(CacheConfig<K>) -> CacheConfig<K>,
    ) -> Self {
        self.caches.configure(configure(self.caches.config()));
        self
    }
}

impl fmt::Debug for RemoteCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteCluster({})", self.name)
    }
}
