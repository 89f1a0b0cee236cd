//! Forks: another cluster that begins with all that this one holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use steersman_apiserver::WebhookHandler;

use crate::{Builder, Cluster, StartError, Storage};

/// Why a cluster could not be forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// Only a store in memory can be copied in an instant.
    #[error(
        "only a cluster in memory can be forked, and this one is on {store}; use a snapshot instead"
    )]
    Storage {
        /// Where this cluster is.
        store: &'static str,
    },
    /// The fork could not be started.
    #[error("cannot start the fork")]
    Start(#[from] StartError),
}

/// What forks of a cluster need to know of it.
pub(crate) struct Forking {
    settings: Builder,
    seed: u64,
    /// How many forks there were.
    count: AtomicU64,
    /// The webhooks that this process answers.
    webhooks: Mutex<Vec<(String, WebhookHandler)>>,
}

impl Forking {
    pub(crate) fn new(settings: Builder, seed: u64) -> Self {
        Self { settings, seed, count: AtomicU64::new(0), webhooks: Mutex::default() }
    }

    pub(crate) fn serve_webhooks(&self, origin: &str, handler: &WebhookHandler) {
        let mut webhooks = self.webhooks.lock().unwrap_or_else(PoisonError::into_inner);
        webhooks.push((origin.to_owned(), handler.clone()));
    }
}

impl Cluster {
    /// Starts another cluster that holds all that this one does at this moment, history and
    /// running Pods included; from there on, neither sees what happens in the other. It has the
    /// same settings and handlers of webhooks, controllers, nodes and a port of its own, and goes
    /// by the same clock. What is random in it follows from the seed of this one and from how
    /// many forks there were before.
    ///
    /// Values are shared, so that a fork costs little more than to start controllers.
    pub async fn fork(&self) -> Result<Self, ForkError> {
        let Some(store) = self.store.memory() else {
            return Err(ForkError::Storage { store: self.store.name() });
        };
        let Forking { settings, seed, count, webhooks } = &self.forking;
        let n = count.fetch_add(1, Ordering::Relaxed) + 1;
        let fork = settings.fork(*seed, n, Storage::Existing(store.fork())).start().await?;
        let webhooks = webhooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (origin, handler) in webhooks {
            fork.serve_webhooks(&origin, handler);
        }
        Ok(fork)
    }
}
