//! Forks: another cluster that begins with all that this one holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use steersman_apiserver::WebhookHandler;
use steersman_node::{Outages, Scripts};

use crate::builder::Builder;
use crate::custom_metrics::Measurements;
use crate::error::StartError;
use crate::storage::{OpenStore, Storage};

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

    /// What the Pods of this cluster do.
    pub(crate) fn scripts(&self) -> &Scripts {
        &self.settings.scripts
    }

    /// Which nodes of this cluster are lost.
    pub(crate) fn outages(&self) -> &Outages {
        &self.settings.outages
    }

    /// What is measured in this cluster.
    pub(crate) fn measurements(&self) -> &Measurements {
        &self.settings.measurements
    }

    pub(crate) fn serve_webhooks(&self, origin: &str, handler: &WebhookHandler) {
        let mut webhooks = self.webhooks.lock().unwrap_or_else(PoisonError::into_inner);
        webhooks.push((origin.to_owned(), handler.clone()));
    }

    /// The settings of the next fork of the cluster that has this store.
    pub(crate) fn next(&self, store: &OpenStore) -> Result<Builder, ForkError> {
        let Some(memory) = store.memory() else {
            return Err(ForkError::Storage { store: store.name() });
        };
        let n = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(self.settings.fork(self.seed, n, Storage::Existing(memory.fork())))
    }

    /// The webhooks that this process answers, by their origins.
    pub(crate) fn webhooks(&self) -> Vec<(String, WebhookHandler)> {
        self.webhooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
