//! The manager: runs controllers and other long-lived work over shared caches.
//!
//! Work is in [groups](Group) that start one after the other and stop in the opposite sense
//! within a graceful timeout. Work that fails, and a lease that is lost, stop the manager; a
//! controller never ends by itself.

mod access;
mod group;
mod leadership;
mod part;
mod running;
mod servers;
mod signal;
mod site;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::caches::Caches;
use crate::client::{Client, WarningLog};
use crate::controller::{Controller, ControllerFamilies, ReconcileRecord};
use crate::election::{ElectionFamilies, Elector, LeaderElection};
use crate::error::{Error, Result};
use crate::events::{Broadcaster, EventFamilies, Recorder};
use crate::health::{Health, Liveness};
use crate::informer::{CacheConfig, Informers};
use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::object::{AnyObject, Object};
use crate::webhook::WebhookServer;
use crate::workqueue::metrics::QueueFamilies;

pub use crate::controller::ControllerPhase;
pub use crate::remote::RemoteCluster;
pub use part::Group;
pub use running::Running;
pub use signal::shutdown_signal;
pub use site::Site;

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

/// What a manager was given, to be started in this order.
enum Addition {
    Controller(Controller),
    Remote(Box<RemoteCluster>, Controller),
    Runnable(Runnable),
}

/// An election, and the client that its requests go through.
struct Election {
    settings: LeaderElection,
    client: kube::Client,
}

impl Election {
    fn elector(self, metrics: &Metrics) -> Result<Elector> {
        Ok(self.settings.elector(self.client, metrics)?)
    }
}

/// Runs controllers. Build it, then [`run_until`](Self::run_until) or [`start`](Self::start).
pub struct Manager {
    client: Client,
    /// With which clients of its own kind can be made.
    config: Option<kube::Config>,
    caches: Caches,
    metrics: Metrics,
    health: Health,
    liveness: Option<Liveness>,
    recorder: Recorder,
    broadcaster: Broadcaster,
    additions: Vec<Addition>,
    sites: Vec<Site>,
    election: Option<Election>,
    records: broadcast::Sender<Arc<ReconcileRecord>>,
    graceful_timeout: Duration,
    /// The client of a controller or runnable, by its name; the manager's where there is none.
    clients: Option<Clients>,
}

/// Gives a controller or runnable a client of its own.
type Clients = Arc<dyn Fn(&str) -> Option<kube::Client> + Send + Sync>;

impl Manager {
    /// A manager of controllers that talk to this cluster.
    pub fn new(client: kube::Client) -> Self {
        Self::with_metrics(client, all_metrics())
    }

    fn with_metrics(client: kube::Client, metrics: Metrics) -> Self {
        let caches = Caches::new(client.clone(), metrics.clone());
        let client = Client::new(client, "steersman");
        let (recorder, broadcaster) = Recorder::new(client.clone(), &metrics);
        Self {
            client,
            config: None,
            caches,
            metrics,
            health: Health::default(),
            liveness: None,
            recorder,
            broadcaster,
            additions: Vec::new(),
            sites: Vec::new(),
            election: None,
            records: broadcast::Sender::new(RECORDS_MAX),
            graceful_timeout: GRACEFUL_TIMEOUT,
            clients: None,
        }
    }

    /// A manager for the cluster of the current kubeconfig, or for the one it runs in. Its
    /// requests are counted in `rest_client_requests_total`, and what the API server warns of is
    /// logged.
    pub async fn from_env() -> Result<Self> {
        Self::from_config(kube::Config::infer().await?)
    }

    /// The same for the cluster that this configuration leads to.
    pub fn from_config(mut config: kube::Config) -> Result<Self> {
        // The client would retry refused requests by itself, for minutes and creations too.
        // Watches and reconciles have their own ways of trying again.
        config.default_retry = false;
        let metrics = all_metrics();
        let client = counted(&config, &metrics)?;
        Ok(Self { config: Some(config), ..Self::with_metrics(client, metrics) })
    }

    /// Adds a controller. Its caches fill on every replica; it reconciles once it is elected, or
    /// at once without leader election. Two controllers of one name are an error that stops the
    /// manager.
    #[must_use]
    pub fn with(mut self, controller: Controller) -> Self {
        self.additions.push(Addition::Controller(controller));
        self
    }

    /// Another cluster that controllers may [watch](crate::controller::Builder::watches_in) and
    /// write to. Its name is what metrics call it.
    pub fn cluster(&self, name: &str, client: kube::Client) -> RemoteCluster {
        RemoteCluster::new(name, client, &self.metrics)
    }

    /// Adds a controller whose objects are in another cluster.
    #[must_use]
    pub fn with_in(mut self, cluster: &RemoteCluster, controller: Controller) -> Self {
        self.additions.push(Addition::Remote(Box::new(cluster.clone()), controller));
        self
    }

    /// Adds other work that runs on every replica as long as the manager does. It is given a
    /// token that is cancelled when it is to stop; if it fails, the manager stops.
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
        self.additions.push(Addition::Runnable(Runnable::new(group, name, run)));
        self
    }

    /// Serves health, metrics or the debug page at an address:
    /// `.serve(Site::all(([0, 0, 0, 0], 8080)))`.
    #[must_use]
    pub fn serve(mut self, site: Site) -> Self {
        self.sites.push(site);
        self
    }

    /// Serves webhooks on every replica, before any cache is synced. `/readyz` shows whether
    /// they are served.
    #[must_use]
    pub fn webhooks(self, server: WebhookServer) -> Self {
        server.register_metrics(&self.metrics);
        let started = server.started();
        self.health.ready_check("webhooks", move || {
            let refused = || Error::message("webhooks are not served");
            std::future::ready(started().then_some(()).ok_or_else(refused))
        });
        let server = server.or_through(self.client.kube());
        self.with_runnable_in(Group::Webhooks, "webhooks", move |_, stop| server.run(stop))
    }

    /// Adds a check to `/healthz`: it fails when a restart would help.
    #[must_use]
    pub fn health_check<F, Fut>(self, name: impl Into<String>, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.health.health_check(name, check);
        self
    }

    /// Adds a check to `/readyz`: it fails while the program cannot do its work. That caches
    /// are synced is checked in any case.
    #[must_use]
    pub fn ready_check<F, Fut>(self, name: impl Into<String>, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.health.ready_check(name, check);
        self
    }

    /// Lets `/healthz` fail when a watch or a worker is stuck: `.liveness(Liveness::default())`.
    #[must_use]
    pub fn liveness(mut self, liveness: Liveness) -> Self {
        self.liveness = Some(liveness);
        self
    }

    /// Lets replicas elect one that reconciles. The others keep their caches filled. A replica
    /// that loses the lease stops with an error, and writes no more before that.
    #[must_use]
    pub fn leader_election(self, settings: LeaderElection) -> Self {
        // A connection of its own: renewals must not wait behind other requests.
        let own = self.config.as_ref().and_then(|config| counted(config, &self.metrics).ok());
        let client = own.unwrap_or_else(|| self.client.kube().clone());
        self.leader_election_with(settings, client)
    }

    /// The same with a client of its own, which should not retry by itself.
    #[must_use]
    pub fn leader_election_with(mut self, settings: LeaderElection, client: kube::Client) -> Self {
        self.election = Some(Election { settings, client });
        self
    }

    /// How long stopping may take altogether, half a minute unless said otherwise. What has not
    /// ended then is aborted; with zero, that is everything, with `Duration::MAX` it is waited for.
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
    /// [`cache`](Self::cache) names others for a kind; the empty name stands for all. Several calls
    /// add up.
    #[must_use]
    pub fn namespaces(self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Self {
        self.caches.restrict_to(namespaces);
        self
    }

    /// Gives controllers and runnables clients of their own, by their names, so that each acts under
    /// an identity with no more permissions than it needs, and tells its Events as it. Caches and the
    /// leader election go through the manager's client, and so does whatever `client` has none for.
    /// So each of them must be allowed to create and patch `events`, in `events.k8s.io` for series and in
    /// the core group for counted ones. Runnables have the manager's recorder; [`Recorder::through`] gives them theirs.
    ///
    /// Controllers in other clusters keep the client of theirs.
    #[must_use]
    pub fn client_for(
        mut self,
        client: impl Fn(&str) -> Option<kube::Client> + Send + Sync + 'static,
    ) -> Self {
        self.clients = Some(Arc::new(client));
        self
    }

    /// The client that the controller or runnable of this name gets: what
    /// [`client_for`](Self::client_for) has for it, or the manager's own.
    pub fn client_of(&self, name: &str) -> kube::Client {
        let own = self.clients.as_ref().and_then(|clients| clients(name));
        own.unwrap_or_else(|| self.client.kube().clone())
    }

    /// What queues and caches count.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The caches that controllers share, for work that follows objects in another way than these do.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The client that controllers share, unless they have [clients of their own](Self::client_for).
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Records events.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Hears of every reconcile from now on.
    pub fn reconciles(&self) -> broadcast::Receiver<Arc<ReconcileRecord>> {
        self.records.subscribe()
    }

    /// Tells of reconciles through this channel, so that several managers can share one.
    #[must_use]
    pub fn reconciles_to(mut self, records: broadcast::Sender<Arc<ReconcileRecord>>) -> Self {
        self.records = records;
        self
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

/// A client with connections of its own, whose requests are counted, and whose warnings are logged.
fn counted(config: &kube::Config, metrics: &Metrics) -> Result<kube::Client> {
    let counter = metrics.request_layer().to(&config.cluster_url);
    let client = kube::client::ClientBuilder::try_from(config.clone())?;
    Ok(client.with_layer(&counter).with_layer(&WarningLog::default()).build())
}

/// Metrics with the families of every part that a manager runs. They are shown in this order,
/// whichever part begins first.
fn all_metrics() -> Metrics {
    let metrics = Metrics::default();
    drop(metrics.families::<QueueFamilies>());
    drop(metrics.families::<ControllerFamilies>());
    drop(metrics.families::<ElectionFamilies>());
    drop(metrics.families::<EventFamilies>());
    drop(metrics.families::<Informers>());
    drop(metrics.request_layer());
    metrics
}
