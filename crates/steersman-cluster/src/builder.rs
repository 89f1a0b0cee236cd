//! Starts a cluster, part by part.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use steersman::{clock, random};
use steersman_apiserver::identity::{Identity, IdentityError};
use steersman_apiserver::listen;
use steersman_apiserver::pki::{Pki, PkiError};
use steersman_apiserver::status::Status;
use steersman_apiserver::{ApiServer, Config};
use steersman_store::{disk, etcd};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::built_in::{BuiltIn, Parts};
use crate::fork::Forking;
use crate::{Cluster, Controllers, Endpoint, OpenStore, STOP_GRACE, Storage};

/// How long a leader among several servers is waited for, unless said otherwise: as in Kubernetes.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// What a cluster is to have.
#[derive(Clone, Debug)]
pub struct Builder {
    nodes: usize,
    pod_termination: Duration,
    controllers: Controllers,
    seed: Option<u64>,
    history: Duration,
    listen: Option<SocketAddr>,
    advertise: Option<IpAddr>,
    storage: Storage,
    lease_duration: Option<Duration>,
}

impl Default for Builder {
    /// Three nodes whose Pods end at once, five minutes of history, no socket, everything in
    /// memory.
    fn default() -> Self {
        Self {
            nodes: 3,
            pod_termination: Duration::ZERO,
            controllers: Controllers::ALL,
            seed: None,
            history: Duration::from_secs(300),
            listen: None,
            advertise: None,
            storage: Storage::Memory,
            lease_duration: None,
        }
    }
}

/// Why a cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address to listen on is not to be had.
    #[error("cannot listen on {address}: {reason}; choose another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        reason: String,
    },
    /// The directory cannot be used.
    #[error("cannot open the data directory")]
    Disk(#[from] disk::OpenError),
    /// etcd cannot be used.
    #[error("cannot use etcd; check that it runs, its addresses and, for https, the certificates")]
    Etcd(#[from] etcd::ConnectError),
    /// The cluster's authority could not be read or made.
    #[error("cannot tell who the cluster is")]
    Identity(#[from] IdentityError),
    /// No certificates could be made.
    #[error("cannot make the certificates of the cluster")]
    Pki(#[from] PkiError),
    /// The API server could not write what every cluster has.
    #[error("cannot start the API server: {message}")]
    ApiServer {
        /// What it said.
        message: String,
    },
}

impl From<Status> for StartError {
    fn from(status: Status) -> Self {
        Self::ApiServer { message: status.to_string() }
    }
}

impl Builder {
    /// How many simulated nodes there are.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// How long the containers of simulated nodes take to end when their Pod is deleted, unless
    /// its grace period is shorter: as long can clients see it terminating.
    #[must_use]
    pub fn pod_termination(mut self, termination: Duration) -> Self {
        self.pod_termination = termination;
        self
    }

    /// Whether the built-in controllers and the scheduler run, or [which](Controllers) of them.
    /// Without them objects stay as they were written, and idle time costs next to nothing; nodes
    /// still run the Pods that are bound to them.
    #[must_use]
    pub fn controllers(mut self, run: impl Into<Controllers>) -> Self {
        self.controllers = run.into();
        self
    }

    /// What everything random follows from; without it, every start is different.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How far back watches and paged lists can go.
    #[must_use]
    pub fn history(mut self, history: Duration) -> Self {
        self.history = history;
        self
    }

    /// Serves the API over HTTPS as well; port 0 takes any free port.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// At which address others reach this server, if it is not the one it listens on: the
    /// endpoints of the service `kubernetes`, the certificate and the kubeconfig name it. Servers
    /// on several machines that listen on every address need one each, to be told apart.
    #[must_use]
    pub fn advertise(mut self, address: IpAddr) -> Self {
        self.advertise = Some(address);
        self
    }

    /// Where the cluster keeps what it holds.
    #[must_use]
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Lets the servers that share a store elect the one that runs controllers, scheduler and
    /// nodes. When it has not been heard of for so long, another takes over; at once when it
    /// stops in an orderly way. On etcd this is so in any case, with 15 seconds.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = Some(duration);
        self
    }

    /// The settings of the n-th fork of a cluster that was started from these with this seed. It
    /// has a port of its own.
    pub(crate) fn fork(&self, seed: u64, n: u64, storage: Storage) -> Self {
        let seed = Some(another_seed(seed, n));
        let listen = self.listen.map(|address| SocketAddr::new(address.ip(), 0));
        Self { seed, listen, storage, ..self.clone() }
    }

    /// Starts the cluster. The API is served when this returns; nodes and controllers are
    /// under way.
    pub async fn start(mut self) -> Result<Cluster, StartError> {
        let mut stopwatch = Stopwatch::new();
        let listener = self.bind().await?;
        let (store, opened) = std::mem::take(&mut self.storage).open().await?;
        stopwatch.lap("store");
        let started = self.start_on(store.clone(), opened, listener, stopwatch).await;
        if started.is_err() {
            store.close().await;
        }
        started
    }

    async fn start_on(
        self,
        store: OpenStore,
        opened: Option<disk::Opened>,
        listener: Option<TcpListener>,
        mut stopwatch: Stopwatch,
    ) -> Result<Cluster, StartError> {
        let shutdown = CancellationToken::new();
        let seed = self.seed.unwrap_or_else(random::next_u64);
        let config = Config::new(Arc::new(store.clone()), Arc::new(clock::now));
        let api = ApiServer::start(Config { seed, shutdown: shutdown.clone(), ..config }).await?;
        let client = kube::Client::new(api.clone(), "default");
        stopwatch.lap("api server");

        let mut tasks = JoinSet::new();
        // Servers that share a store elect one that forgets the past: that is the store's task.
        let history = (!store.is_shared()).then_some(self.history);
        spawn_upkeep(&mut tasks, &api, history, &shutdown);
        let known = listener.is_some() || self.controllers.publishes_root_ca();
        let identity = if known { Some(Identity::of(&store).await?) } else { None };
        let endpoint = match listener.zip(identity.as_ref()) {
            Some((listener, identity)) => {
                let socket = Socket { listener, advertise: self.advertise };
                Some(serve(&mut tasks, &api, identity, socket, &shutdown)?)
            }
            None => None,
        };
        stopwatch.lap("https");

        let lease_duration = self.lease_duration.or(store.is_shared().then_some(LEASE_DURATION));
        let Self { nodes, pod_termination, controllers, .. } = self;
        let root_ca = identity.map(|identity| identity.ca().into());
        let client_of_parts = client.clone();
        let parts = Parts { client: client_of_parts, nodes, pod_termination, controllers, root_ca };
        let built_in = BuiltIn::start(parts, lease_duration);
        stopwatch.lap("controllers");
        let (forking, timings) = (Forking::new(self, seed), stopwatch.laps);
        Ok(Cluster {
            api,
            client,
            store,
            opened,
            built_in,
            endpoint,
            tasks,
            shutdown,
            timings,
            forking,
        })
    }

    async fn bind(&self) -> Result<Option<TcpListener>, StartError> {
        let Some(address) = self.listen else {
            return Ok(None);
        };
        match TcpListener::bind(address).await {
            Ok(listener) => Ok(Some(listener)),
            Err(error) => {
                let reason = match error.kind() {
                    std::io::ErrorKind::AddrInUse => "the address is in use".to_owned(),
                    _ => error.to_string(),
                };
                Err(StartError::Listen { address, reason })
            }
        }
    }
}

/// The n-th number that follows from a seed, as far from it as from all others (SplitMix64).
fn another_seed(seed: u64, n: u64) -> u64 {
    let mut mixed = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Starts what keeps the API server from growing for ever, and what it always has.
fn spawn_upkeep(
    tasks: &mut JoinSet<()>,
    api: &ApiServer,
    history: Option<Duration>,
    shutdown: &CancellationToken,
) {
    if let Some(history) = history {
        let (compacted, token) = (api.clone(), shutdown.clone());
        tasks.spawn(async move {
            token.run_until_cancelled(compacted.run_compaction(history)).await;
        });
    }
    let (kept, token) = (api.clone(), shutdown.clone());
    tasks.spawn(async move {
        token.run_until_cancelled(kept.run_bootstrap()).await;
    });
}

/// Where the API is served, and where others reach it if that is elsewhere.
struct Socket {
    listener: TcpListener,
    advertise: Option<IpAddr>,
}

/// Starts to serve HTTPS, with a certificate of the cluster's own authority.
fn serve(
    tasks: &mut JoinSet<()>,
    api: &ApiServer,
    identity: &Identity,
    Socket { listener, advertise }: Socket,
    shutdown: &CancellationToken,
) -> Result<Endpoint, StartError> {
    let address = listener.local_addr().map_err(|error| StartError::Listen {
        address: SocketAddr::from(([0, 0, 0, 0], 0)),
        reason: error.to_string(),
    })?;
    let reached = SocketAddr::new(advertise.unwrap_or(address.ip()), address.port());
    api.advertise(reached);
    let mut names = vec![address.ip().to_string(), reached.ip().to_string()];
    names.dedup();
    let pki = Pki::of(identity, &names)?;
    let url = format!("https://{}", reachable(reached));
    let endpoint = Endpoint { address, kubeconfig: pki.kubeconfig(&url), url };
    let tls = pki.server_config()?;
    tasks.spawn(listen::serve(api.clone(), listener, tls, shutdown.clone(), STOP_GRACE));
    Ok(endpoint)
}

/// An address that a client on this machine can connect to: "every address" is none.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}

/// Notes how long each part took.
struct Stopwatch {
    last: Instant,
    laps: Vec<(&'static str, Duration)>,
}

impl Stopwatch {
    fn new() -> Self {
        Self { last: Instant::now(), laps: Vec::new() }
    }

    fn lap(&mut self, part: &'static str) {
        let now = Instant::now();
        self.laps.push((part, now - self.last));
        self.last = now;
    }
}
