//! The manager: runs controllers and other long-lived work over shared caches.
//!
//! Work is in [groups](Group) that start one after the other and stop in the opposite sense
//! within a graceful timeout. Work that fails, and a lease that is lost, stop the manager; a
//! controller never ends by itself.

mod controllers;
mod group;
mod part;
mod running;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::caches::Caches;
use crate::client::Client;
use crate::controller::{Controller, ReconcileRecord};
use crate::error::Result;
use crate::informer::CacheConfig;
use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::object::{AnyObject, Object};

pub use controllers::ControllerPhase;
pub(crate) use controllers::Starting;
pub use part::Group;
pub use running::Running;

/// Records kept for a slow listener; older ones are dropped.
const RECORDS_MAX: usize = 4096;
/// How long stopping may take altogether, unless said otherwise.
const GRACEFUL_TIMEOUT: Duration = Duration::from_secs(30);

type Run = Box<dyn FnOnce(Client, CancellationToken) -> BoxFuture<'static, Result<()>> + Send>;

/// Work that runs as long as the manager does.
struct Runnable {
    name: String,
    group: Group,
    run: Run,
}

/// Runs controllers. Build it, then [`run_until`](Self::run_until) or [`start`](Self::start).
pub struct Manager {
    client: Client,
    caches: Caches,
    metrics: Metrics,
    controllers: Vec<Controller>,
    runnables: Vec<Runnable>,
    records: broadcast::Sender<Arc<ReconcileRecord>>,
    graceful_timeout: Duration,
}

impl Manager {
    /// A manager of controllers that talk to this cluster.
    pub fn new(client: kube::Client) -> Self {
        let metrics = Metrics::default();
        Self {
            caches: Caches::new(client.clone(), metrics.clone()),
            metrics,
            client: Client::new(client, "steersman"),
            controllers: Vec::new(),
            runnables: Vec::new(),
            records: broadcast::Sender::new(RECORDS_MAX),
            graceful_timeout: GRACEFUL_TIMEOUT,
        }
    }

    /// A manager for the cluster of the current kubeconfig, or for the one it runs in.
    pub async fn from_env() -> Result<Self> {
        let mut config = kube::Config::infer().await?;
        // The client would retry refused requests by itself, for minutes and creations too.
        // Watches and reconciles have their own ways of trying again.
        config.default_retry = false;
        Ok(Self::new(kube::Client::try_from(config)?))
    }

    /// Adds a controller. Its caches fill on every replica; it reconciles once it is elected, or
    /// at once without leader election. Two controllers of one name are an error that stops the
    /// manager.
    #[must_use]
    pub fn with(mut self, controller: Controller) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Adds other work that runs on every replica as long as the manager does. It is given a
    /// token that tells when to stop; if it fails, the manager stops.
    #[must_use]
    pub fn with_runnable<F, Fut>(self, name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(Client, CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.with_runnable_in(Group::Others, name, run)
    }

    /// Adds other work to a group: in [`Group::LeaderElected`] it runs on the elected replica
    /// only.
    #[must_use]
    pub fn with_runnable_in<F, Fut>(mut self, group: Group, name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(Client, CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.runnables.push(Runnable::new(group, name, run));
        self
    }

    /// How long stopping may take altogether, half a minute unless said otherwise. What has not
    /// ended then is aborted; with zero, that is everything.
    #[must_use]
    pub fn graceful_timeout(mut self, timeout: Duration) -> Self {
        self.graceful_timeout = timeout;
        self
    }

    /// Chooses how the cache holds the objects of a kind:
    /// `.cache::<Pod>(|cache| cache.form(Form::Typed))`, and which of them:
    /// `.cache::<Pod>(|cache| cache.namespaces(["a", "b"]).labels("app=web"))`. Several calls add
    /// up.
    #[must_use]
    pub fn cache<K: Object>(
        self,
        configure: impl FnOnce(CacheConfig<K>) -> CacheConfig<K>,
    ) -> Self {
        self.caches.configure(configure(self.caches.config()));
        self
    }

    /// The same for a kind that may be known only at run time.
    #[must_use]
    pub fn cache_of<K: AnyObject>(
        self,
        kind: &Kind<K>,
        configure: impl FnOnce(CacheConfig<K>) -> CacheConfig<K>,
    ) -> Self {
        self.caches.configure_of(kind, configure(self.caches.config_of(kind)));
        self
    }

    /// Restricts the caches of all kinds that live in namespaces to these, unless
    /// [`cache`](Self::cache) names others for a kind. Several calls add up.
    #[must_use]
    pub fn namespaces(self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Self {
        self.caches.restrict_to(namespaces);
        self
    }

    /// What queues and caches count.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The client that controllers share.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Hears of every reconcile from now on.
    pub fn reconciles(&self) -> broadcast::Receiver<Arc<ReconcileRecord>> {
        self.records.subscribe()
    }

    /// Runs until `shutdown` is ready or some work fails, then stops everything.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let running = self.start();
        let ended = tokio::select! {
            () = shutdown => Ok(()),
            error = running.failed() => Err(error),
        };
        running.stop().await;
        ended
    }

    /// Starts everything in the background.
    pub fn start(self) -> Running {
        Running::start(self)
    }
}

impl Runnable {
    fn new<F, Fut>(group: Group, name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(Client, CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let run: Run = Box::new(move |client, token| Box::pin(run(client, token)));
        Self { name: name.into(), group, run }
    }
}

/// Ready when the process is asked to stop: Ctrl-C, or SIGTERM where that exists.
pub async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
