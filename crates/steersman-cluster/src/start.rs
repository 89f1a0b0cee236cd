//! Starts a cluster, part by part.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use steersman::{Client, clock, random};
use steersman_apiserver::identity::Identity;
use steersman_apiserver::listen;
use steersman_apiserver::pki::Pki;
use steersman_apiserver::{ApiServer, Config};
use steersman_store::disk;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::authority::Keys;
use crate::builder::Builder;
use crate::built_in::{BuiltIn, Parts};
use crate::cluster::{Cluster, Endpoint};
use crate::csi_attacher;
use crate::error::StartError;
use crate::fork::Forking;
use crate::residents::Residents;
use crate::storage::OpenStore;

/// How long a leader among several servers is waited for, unless said otherwise: as in Kubernetes.
const LEASE_DURATION: Duration = Duration::from_secs(15);

impl Builder {
    /// Starts the cluster. The API is served when this returns; nodes and controllers are
    /// under way.
    pub async fn start(self) -> Result<Cluster, StartError> {
        self.started().await
    }

    /// Boxed, because the compiler makes an async function in the crate that awaits it: without a
    /// box, all that a start may do, etcd's client included, is compiled in each of a user's tests.
    fn started(mut self) -> BoxFuture<'static, Result<Cluster, StartError>> {
        Box::pin(async move {
            let mut stopwatch = Stopwatch::new();
            let listener = self.bind().await?;
            let (store, opened) =
                std::mem::take(&mut self.storage).open(self.history_bytes).await?;
            stopwatch.lap("store");
            let started = self.start_on(store.clone(), opened, listener, stopwatch).await;
            if started.is_err() {
                store.close().await;
            }
            started
        })
    }

    async fn start_on(
        self,
        store: OpenStore,
        opened: Option<disk::Opened>,
        listener: Option<TcpListener>,
        mut stopwatch: Stopwatch,
    ) -> Result<Cluster, StartError> {
        let decrypted = store.decrypted(self.encryption.clone()).await?;
        let shutdown = CancellationToken::new();
        let seed = self.seed.unwrap_or_else(random::next_u64);
        let residents = Residents::new(&self, &shutdown);
        let config = Config {
            seed,
            shutdown: shutdown.clone(),
            authentication: self.authentication.clone(),
            authorization: self.authorization,
            audit: self.audit.clone(),
            admission: self.plugins(),
            requests_inflight_max: self.requests_inflight_max,
            service_ranges: self.service_ranges.clone(),
            runtime_config: self.runtime_config.clone(),
            residents: residents.all(),
            ..Config::new(Arc::clone(&decrypted), Arc::new(clock::now))
        };
        let api = ApiServer::start(config).await?;
        residents.read_from(&api);
        let client = kube::Client::new(api.direct(), "default");
        self.provide_class(&client).await;
        if self.controllers.attach_volumes() {
            csi_attacher::grant(&client).await;
        }
        stopwatch.lap("api server");

        let mut tasks = JoinSet::new();
        // Servers that share a store elect one that forgets the past: that is the store's task.
        let history = (!store.is_shared()).then_some(self.history);
        spawn_upkeep(&mut tasks, &api, history, &shutdown);
        let known = listener.is_some() || self.controllers.need_keys();
        let identity = if known { Some(Identity::of(&*decrypted).await?) } else { None };
        let endpoint = match listener.zip(identity.as_ref()) {
            Some((listener, identity)) => {
                let grace = self.shutdown.grace;
                let services = self.service_ranges.firsts().map(|it| it.to_string()).collect();
                let socket = Socket { listener, advertise: self.advertise, grace, services };
                Some(serve(&mut tasks, &api, identity, socket, &shutdown)?)
            }
            None => None,
        };
        // In process, nobody is somebody else who would need it.
        if endpoint.is_some() {
            residents.grant(&client).await;
        }
        stopwatch.lap("https");

        let lease_duration = self.lease_duration.or(store.is_shared().then_some(LEASE_DURATION));
        let parts = self.parts(&api, identity);
        let built_in = {
            let _elsewhere = self.controllers_on.as_ref().map(Handle::enter);
            BuiltIn::start(parts, &api, lease_duration)
        };
        stopwatch.lap("controllers");
        Ok(Cluster {
            api,
            client,
            store,
            opened,
            built_in,
            _residents: residents,
            endpoint,
            tasks,
            shutdown,
            ending: self.shutdown,
            timings: stopwatch.laps,
            forking: Forking::new(self, seed),
        })
    }

    /// Makes the class that claims get by default, before anybody can create one, if somebody makes
    /// volumes for it. Nobody's webhook keeps a cluster from starting.
    async fn provide_class(&self, client: &kube::Client) {
        if !self.controllers.provision_volumes() {
            return;
        }
        let client = Client::new(client.clone(), "steersman");
        if let Err(error) = steersman_controllers::provide_standard_class(&client).await {
            tracing::warn!(%error, "no storage class created; claims that name none will wait");
        }
    }

    /// What runs beside the API server.
    fn parts(&self, api: &ApiServer, identity: Option<Identity>) -> Parts {
        Parts {
            api: api.for_own_parts(),
            nodes: self.nodes,
            node_groups: self.node_groups.clone(),
            pod_termination: self.pod_termination,
            scripts: self.scripts.clone(),
            outages: self.outages.clone(),
            controllers: self.controllers,
            load_balancer_pool: self.load_balancer_pool,
            node_cidrs: self.node_cidrs.clone(),
            settings: self.controller_settings,
            runtime_config: self.runtime_config.clone(),
            families: self.families(),
            scheduler: self.scheduler.clone(),
            root_ca: identity.as_ref().map(|identity| identity.ca().into()),
            authority: identity.map(|identity| Arc::new(Keys(identity)) as Arc<_>),
        }
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

/// Starts what keeps the API server from growing for ever, and what it always has.
fn spawn_upkeep(
    tasks: &mut JoinSet<()>,
    api: &ApiServer,
    history: Option<Duration>,
    shutdown: &CancellationToken,
) {
    if let Some(history) = history {
        let compacted = api.clone();
        let token = shutdown.clone();
        tasks.spawn(async move {
            token.run_until_cancelled(compacted.run_compaction(history)).await;
        });
    }
    let kept = api.clone();
    let token = shutdown.clone();
    tasks.spawn(async move {
        token.run_until_cancelled(kept.run_bootstrap()).await;
    });
}

/// Where the API is served, and where others reach it if that is elsewhere.
struct Socket {
    listener: TcpListener,
    advertise: Option<IpAddr>,
    /// How long requests may take to end when the cluster stops.
    grace: Duration,
    /// The addresses by which Pods reach the API server.
    services: Vec<String>,
}

/// Starts to serve HTTPS, with a certificate of the cluster's own authority.
fn serve(
    tasks: &mut JoinSet<()>,
    api: &ApiServer,
    identity: &Identity,
    Socket { listener, advertise, grace, services }: Socket,
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
    names.extend(services);
    let pki = Pki::of(identity, &names)?;
    let url = format!("https://{}", reachable(reached));
    let endpoint = Endpoint { address, kubeconfig: pki.kubeconfig(&url), url };
    let tls = pki.server_tls()?;
    tasks.spawn(listen::serve(api.clone(), listener, tls, shutdown.clone(), grace));
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
