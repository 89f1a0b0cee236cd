//! What runs beside the API server: controllers, scheduler and simulated nodes.
//!
//! A server that has its store to itself runs them always. Servers that share a store elect one
//! of them that does; the others keep their caches filled and take over when it goes. Who loses
//! the leader lease stops all of it at once and competes for it again: the API is served
//! throughout.

use std::sync::Arc;
use std::time::Duration;

use steersman::Error;
use steersman::controller::ReconcileRecord;
use steersman::election::LeaderElection;
use steersman::manager::{Manager, Running};
use steersman_apiserver::{ApiServer, RuntimeConfig};
use steersman_controllers::{Authority, Cidr, ControllerSettings, Installation, NodeCidrs, Pulse};
use steersman_node::{IpFamilies, NodeGroup, Outages, Scripts, SimulatedNodes};
use steersman_scheduler::{Configuration, Scheduler};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::attention::Attention;
use crate::controllers::Controllers;
use crate::identities;
use crate::pulse::Hearts;

/// How long reconciles under way get to end when the cluster stops: what they did not do is done
/// after the next start, or by the next leader.
const CONTROLLERS_GRACE: Duration = Duration::from_millis(600);
/// The Lease that servers of one store compete for.
const LEASE: (&str, &str) = ("kube-system", "steersman");
/// How long a server that stops tries to give its lease back: its store may be down.
const RESIGN_GRACE: Duration = Duration::from_secs(2);
/// How long to wait before standing for election again.
const AGAIN: Duration = Duration::from_secs(1);
/// Records kept for a slow listener; older ones are dropped.
const RECORDS_MAX: usize = 4096;

/// What there is to run.
#[derive(Clone)]
pub(crate) struct Parts {
    /// The API server, which each part calls under its own identity.
    pub(crate) api: ApiServer,
    pub(crate) nodes: usize,
    pub(crate) node_groups: Vec<NodeGroup>,
    pub(crate) pod_termination: Duration,
    pub(crate) scripts: Scripts,
    pub(crate) outages: Outages,
    pub(crate) controllers: Controllers,
    /// The certificates by which Pods know the API server, if anybody is to publish them.
    pub(crate) root_ca: Option<Arc<str>>,
    /// The keys of the cluster, if anybody is to sign with them.
    pub(crate) authority: Option<Arc<dyn Authority>>,
    /// Where load balancers get their addresses from.
    pub(crate) load_balancer_pool: Option<Cidr>,
    /// Where nodes get ranges for their Pods from.
    pub(crate) node_cidrs: Vec<NodeCidrs>,
    /// What controllers are told by flags.
    pub(crate) settings: ControllerSettings,
    /// What is served on request.
    pub(crate) runtime_config: RuntimeConfig,
    /// Of which families the addresses of nodes and Pods are.
    pub(crate) families: IpFamilies,
    pub(crate) scheduler: Configuration,
}

impl Parts {
    /// A manager of everything but the nodes, whose hearts may beat unseen.
    fn manager(&self, pulse: Option<Arc<dyn Pulse>>) -> Manager {
        let api = self.api.clone();
        let manager = Manager::new(identities::shared_client(&api))
            .client_for(move |part| Some(identities::client_of(&api, part)))
            .graceful_timeout(CONTROLLERS_GRACE);
        let metrics = manager.metrics().clone();
        self.api.expose_metrics("controllers", Arc::new(move || metrics.render_text()));
        let runs = |name: &str| self.controllers.runs(name);
        let manager = steersman_controllers::restrict_caches(manager);
        let root_ca = self.root_ca.as_deref();
        let authority = self.authority.clone();
        let installation = Installation {
            root_ca,
            authority,
            load_balancer_pool: self.load_balancer_pool,
            node_cidrs: &self.node_cidrs,
            pulse,
            settings: self.settings,
            serves: &|group, version| self.runtime_config.serves(group, version),
            runs: &runs,
        };
        let mut manager = steersman_controllers::install_with(manager, &installation);
        if self.controllers.schedules() {
            let scheduler = Scheduler::configured(self.scheduler.clone());
            manager = scheduler.install(manager).expect("it was checked when it was chosen");
        }
        manager
    }

    fn nodes(&self) -> SimulatedNodes {
        SimulatedNodes::new(self.nodes)
            .with_termination(self.pod_termination)
            .with_scripts(self.scripts.clone())
            .with_outages(self.outages.clone())
            .with_families(self.families)
            .with_groups(self.node_groups.clone())
    }

    /// Starts everything, on a server that has the store to itself: every request passes it, so
    /// that nodes can be told when somebody looks.
    fn start(&self, api: &ApiServer) -> Running {
        let nodes = self.nodes();
        let heartbeats = nodes.heartbeats_on_demand();
        api.on_demand(Arc::new(Attention(Arc::downgrade(&heartbeats))));
        let pulse: Arc<dyn Pulse> = Arc::new(Hearts(Arc::clone(&heartbeats)));
        nodes.install_with(self.manager(Some(pulse)), heartbeats).start()
    }
}

/// The parts at work. Dropping them stops them at once.
pub(crate) enum BuiltIn {
    /// This server has the store to itself.
    Alone(Box<Running>),
    /// This server is one of several.
    Candidate(Candidate),
}

impl BuiltIn {
    /// Starts them; with a lease duration, once this server is elected.
    pub(crate) fn start(parts: Parts, api: &ApiServer, lease_duration: Option<Duration>) -> Self {
        match lease_duration {
            None => Self::Alone(Box::new(parts.start(api))),
            Some(duration) => Self::Candidate(Candidate::stand(parts, duration)),
        }
    }

    /// Hears of every reconcile from now on.
    pub(crate) fn reconciles(&self) -> broadcast::Receiver<Arc<ReconcileRecord>> {
        match self {
            Self::Alone(running) => running.reconciles(),
            Self::Candidate(candidate) => candidate.records.subscribe(),
        }
    }

    /// Whether they run here.
    pub(crate) fn leads(&self) -> bool {
        match self {
            Self::Alone(_) => true,
            Self::Candidate(candidate) => *candidate.leads.borrow(),
        }
    }

    /// Waits until some part fails, and tells how. A candidate starts what failed anew.
    pub(crate) fn failed(&self) -> impl Future<Output = Error> + Send + 'static {
        let failed = match self {
            Self::Alone(running) => Some(running.failed()),
            Self::Candidate(_) => None,
        };
        async move {
            match failed {
                Some(failed) => failed.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Stops them; a leader gives its lease back.
    pub(crate) async fn stop(self) {
        match self {
            Self::Alone(running) => running.stop().await,
            Self::Candidate(candidate) => candidate.resign().await,
        }
    }
}

/// One of the servers that share a store.
pub(crate) struct Candidate {
    records: broadcast::Sender<Arc<ReconcileRecord>>,
    leads: watch::Receiver<bool>,
    stop: CancellationToken,
    stands: AbortOnDropHandle<()>,
}

impl Candidate {
    fn stand(parts: Parts, lease_duration: Duration) -> Self {
        let records = broadcast::Sender::new(RECORDS_MAX);
        let stop = CancellationToken::new();
        let (leading, leads) = watch::channel(false);
        let stands = stand(parts, lease_duration, records.clone(), leading, stop.clone());
        Self { records, leads, stop, stands: AbortOnDropHandle::new(tokio::spawn(stands)) }
    }

    /// Gives the lease back, unless that takes too long: then it runs out by itself.
    async fn resign(self) {
        self.stop.cancel();
        if tokio::time::timeout(RESIGN_GRACE, self.stands).await.is_err() {
            tracing::warn!("leader lease not released; others wait until it expires");
        }
    }
}

/// Stands for election again and again.
async fn stand(
    parts: Parts,
    lease_duration: Duration,
    records: broadcast::Sender<Arc<ReconcileRecord>>,
    leads: watch::Sender<bool>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let manager = parts.nodes().install(parts.manager(None));
        let running = manager.leader_election(election(lease_duration)).start();
        let told = running.reconciles();
        let elected = running.elected();
        let failed = running.failed();
        let lead = async {
            elected.await;
            leads.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = lead => {}
            () = forward(told, &records) => {}
            error = failed => tracing::warn!(%error, "controllers stopped; trying to become leader again"),
        }
        leads.send_replace(false);
        running.stop().await;
        let _ = tokio::time::timeout(AGAIN, stop.cancelled()).await;
    }
}

/// The election. Every candidacy has an identity of its own: what an earlier one of this process
/// began may still land, so that its term must run out like any other's.
fn election(lease_duration: Duration) -> LeaderElection {
    let (namespace, name) = LEASE;
    // In the proportions that Kubernetes has: 15, 10 and 2 seconds.
    LeaderElection::new(namespace, name)
        .lease_duration(lease_duration)
        .renew_deadline(lease_duration * 2 / 3)
        .retry_period(lease_duration * 2 / 15)
}

/// Passes records on for ever.
async fn forward(
    mut told: broadcast::Receiver<Arc<ReconcileRecord>>,
    records: &broadcast::Sender<Arc<ReconcileRecord>>,
) {
    loop {
        match told.recv().await {
            Ok(record) => _ = records.send(record), // nobody needs to listen
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
