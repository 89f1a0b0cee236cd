//! A running cluster: what can be asked of it, and how it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use steersman::controller::ReconcileRecord;
use steersman_apiserver::user::User;
use steersman_apiserver::{ApiServer, WebhookHandler};
use steersman_node::{Outages, PodRule};
use steersman_store::disk;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::builder::{Builder, Shutdown};
use crate::built_in::BuiltIn;
use crate::custom_metrics::Metrics;
use crate::fork::{ForkError, Forking};
use crate::identities;
use crate::residents::Residents;
use crate::storage::OpenStore;

/// How much longer than its requests a listener may take to end.
const LISTENER_GRACE: Duration = Duration::from_millis(400);

/// A running cluster. Dropping it stops it at once; [`Cluster::stop`] does so gracefully.
pub struct Cluster {
    pub(crate) api: ApiServer,
    pub(crate) client: kube::Client,
    pub(crate) store: OpenStore,
    pub(crate) opened: Option<disk::Opened>,
    pub(crate) built_in: BuiltIn,
    /// Answers for as long as it is held.
    pub(crate) _residents: Residents,
    pub(crate) endpoint: Option<Endpoint>,
    /// What runs beside the controllers: the listener, compaction, expiry.
    pub(crate) tasks: JoinSet<()>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) ending: Shutdown,
    pub(crate) timings: Vec<(&'static str, Duration)>,
    pub(crate) forking: Forking,
}

/// Where and how a cluster can be reached.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The address that is listened on.
    pub address: SocketAddr,
    /// The same as a URL.
    pub url: String,
    /// A kubeconfig for the cluster's administrator.
    pub kubeconfig: String,
}

impl Cluster {
    /// Begins a cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client of the cluster's administrator, in process.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The API server's service.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// A client of a user, in process: it may do what roles allow that user, and nothing else.
    /// Objects that name no namespace are in `default`, or in the namespace of a
    /// [service account](User::service_account), as for a program that runs as one.
    pub fn client_as(&self, user: User) -> kube::Client {
        identities::client(&self.api.direct(), user)
    }

    /// Lets a handler of this process answer the webhooks of an origin, such as
    /// `https://webhooks.test`, without a socket. Every other origin is called over HTTPS.
    pub fn serve_webhooks(&self, origin: &str, handler: WebhookHandler) {
        self.forking.serve_webhooks(origin, &handler);
        self.api.serve_webhooks(origin, handler);
    }

    /// Begins a rule for what the Pods of the simulated nodes do, such as
    /// `cluster.pods().named("migrate").exits(3).after(minute)`. Unless anybody says otherwise, they
    /// run for ever and are ready at once.
    pub fn pods(&self) -> PodRule {
        self.forking.scripts().rule()
    }

    /// The simulated nodes, any of which can be cut off and come back:
    /// `cluster.nodes().named("node-1").lost()`.
    pub fn nodes(&self) -> Outages {
        self.forking.outages().clone()
    }

    /// Says what is measured of objects, or outside the cluster, for autoscalers to go by:
    /// `cluster.metrics().external().set("queue_length", "30").await?`. From the first value on,
    /// `custom.metrics.k8s.io` and `external.metrics.k8s.io` are served.
    pub fn metrics(&self) -> Metrics {
        let measurements = self.forking.measurements().clone();
        Metrics { measurements, client: self.client() }
    }

    /// The store that holds everything.
    pub fn store(&self) -> &OpenStore {
        &self.store
    }

    /// What was found in the store's directory, if the store is on disk.
    pub fn opened(&self) -> Option<&disk::Opened> {
        self.opened.as_ref()
    }

    /// Where the cluster can be reached over HTTPS, if it listens.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    /// How long each part took to start.
    pub fn timings(&self) -> &[(&'static str, Duration)] {
        &self.timings
    }

    /// Hears of every reconcile of the built-in controllers from now on.
    pub fn reconciles(&self) -> broadcast::Receiver<Arc<ReconcileRecord>> {
        self.built_in.reconciles()
    }

    /// Whether the built-in controllers run here: always, unless servers that share a store
    /// [elect](Builder::lease_duration) one of them.
    pub fn leads(&self) -> bool {
        self.built_in.leads()
    }

    /// Waits until some built-in part fails, which none should, and tells how.
    pub fn failed(&self) -> impl Future<Output = steersman::Error> + Send + 'static {
        self.built_in.failed()
    }

    /// Starts another cluster that holds all that this one does at this moment, history and
    /// running Pods included; from there on, neither sees what happens in the other. It has the
    /// same settings and handlers of webhooks, controllers, nodes and a port of its own, and goes
    /// by the same clock. What is random in it follows from the seed of this one and from how
    /// many forks there were before.
    ///
    /// Values are shared, so that a fork costs little more than to start controllers.
    pub async fn fork(&self) -> Result<Self, ForkError> {
        let fork = self.forking.next(&self.store)?.start().await?;
        for (origin, handler) in self.forking.webhooks() {
            fork.serve_webhooks(&origin, handler);
        }
        Ok(fork)
    }

    /// Stops everything: `/readyz` fails first, and clients have [time](Builder::shutdown_delay) to
    /// notice; then controllers end, then watches and connections, then the store. Its directory, if
    /// it has one, is free when this returns.
    pub async fn stop(mut self) {
        let Shutdown { delay, grace } = self.ending;
        self.api.stop_soon();
        if !delay.is_zero() {
            // Others may be there for the clients. If it fails, the listener tells.
            let withdrawn = tokio::time::timeout(delay, self.api.withdraw());
            let _ = tokio::join!(tokio::time::sleep(delay), withdrawn);
        }
        self.built_in.stop().await;
        self.shutdown.cancel();
        self.api.shutdown();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(grace + LISTENER_GRACE, ended).await;
        self.store.close().await;
    }
}
