//! The manager: runs controllers and other long-lived work over shared caches.
//!
//! Everything starts together and stops together. A runnable that fails stops the manager; a
//! controller never ends by itself.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::caches::Caches;
use crate::client::Client;
use crate::controller::{Controller, Environment, Queues, ReconcileRecord};
use crate::error::{Error, Result};
use crate::informer::CacheConfig;
use crate::metrics::Metrics;
use crate::object::{Object, ObjectKey};
use crate::workqueue::Dump;

/// Records kept for a slow listener; older ones are dropped.
const RECORDS_MAX: usize = 4096;
/// How long stopping may take altogether.
const STOP_GRACE: Duration = Duration::from_millis(600);

type Runnable = Box<dyn FnOnce(Client, CancellationToken) -> BoxFuture<'static, Result<()>> + Send>;

/// Runs controllers. Build it, then [`run_until`](Self::run_until) or [`start`](Self::start).
pub struct Manager {
    client: Client,
    caches: Caches,
    metrics: Metrics,
    controllers: Vec<Controller>,
    runnables: Vec<(String, Runnable)>,
    records: broadcast::Sender<Arc<ReconcileRecord>>,
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

    /// Adds a controller.
    #[must_use]
    pub fn with(mut self, controller: Controller) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Adds other work that runs as long as the manager does. It is given a token that tells
    /// when to stop; if it fails, the manager stops.
    #[must_use]
    pub fn with_runnable<F, Fut>(mut self, name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(Client, CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let run: Runnable = Box::new(move |client, token| Box::pin(run(client, token)));
        self.runnables.push((name.into(), run));
        self
    }

    /// Chooses how the cache holds the objects of a kind:
    /// `.cache::<Pod>(|cache| cache.form(Form::Typed))`. Several calls add up.
    #[must_use]
    pub fn cache<K: Object>(
        self,
        configure: impl FnOnce(CacheConfig<K>) -> CacheConfig<K>,
    ) -> Self {
        self.caches.configure(configure(self.caches.config()));
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

    /// Runs until `shutdown` is ready or a runnable fails, then stops everything.
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
        let mut running = Running {
            client: self.client,
            caches: self.caches,
            metrics: self.metrics,
            queues: Queues::default(),
            records: self.records,
            shutdown: CancellationToken::new(),
            tasks: JoinSet::new(),
            failure: watch::Sender::new(None),
        };
        for controller in self.controllers {
            running.add(controller);
        }
        for (name, run) in self.runnables {
            let work = run(running.client.clone(), running.shutdown.clone());
            running.spawn(name, work);
        }
        running
    }
}

/// A manager at work. Dropping it stops everything at once.
pub struct Running {
    client: Client,
    caches: Caches,
    metrics: Metrics,
    queues: Queues,
    records: broadcast::Sender<Arc<ReconcileRecord>>,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
    /// What the first work that failed said.
    failure: watch::Sender<Option<String>>,
}

impl Running {
    /// Starts one more controller.
    pub fn add(&mut self, controller: Controller) {
        let environment = Environment {
            client: self.client.clone(),
            caches: self.caches.clone(),
            metrics: self.metrics.clone(),
            queues: self.queues.clone(),
            shutdown: self.shutdown.clone(),
            records: self.records.clone(),
        };
        self.spawn(controller.name().to_owned(), async move {
            controller.run(environment).await;
            Ok(())
        });
    }

    /// What queues and caches count.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What waits, runs and backs off in the queue of each controller, and why.
    pub fn queues(&self) -> Vec<Dump<ObjectKey>> {
        self.queues.dump()
    }

    /// The caches that controllers share.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Hears of every reconcile from now on.
    pub fn reconciles(&self) -> broadcast::Receiver<Arc<ReconcileRecord>> {
        self.records.subscribe()
    }

    /// Waits until some work fails or panics, and tells how.
    pub fn failed(&self) -> impl Future<Output = Error> + Send + 'static {
        let mut failure = self.failure.subscribe();
        async move {
            let text = failure.wait_for(Option::is_some).await.ok().and_then(|text| text.clone());
            match text {
                Some(text) => Error::message(text),
                None => std::future::pending().await, // stopped without a failure
            }
        }
    }

    fn spawn(&mut self, name: String, work: impl Future<Output = Result<()>> + Send + 'static) {
        let failure = self.failure.clone();
        self.tasks.spawn(async move {
            let text = match AssertUnwindSafe(work).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => format!("{name}: {error}"),
                Err(_) => format!("{name} panicked"),
            };
            tracing::error!(failure = text, "part of the manager has ended");
            failure.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert(text);
                is_first
            });
        });
    }

    /// Stops everything: no new work begins, running work may end within a grace period.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_GRACE, ended).await.is_err() {
            tracing::warn!("some work did not end in time and was aborted");
        }
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
