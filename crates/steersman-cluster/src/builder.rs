//! What a cluster is to have.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use steersman_apiserver::audit::Auditing;
use steersman_apiserver::{
    Authentication, AuthorizationMode, PluginSelection, REQUESTS_INFLIGHT_MAX, RuntimeConfig,
    ServiceRanges,
};
use steersman_controllers::{Cidr, ControllerSettings, NodeCidrs};
use steersman_node::{IpFamilies, NodeGroup, Outages, Scripts};
use steersman_scheduler::{
    Configuration as SchedulerConfiguration, ConfigurationError as SchedulerConfigurationError,
    Scheduler,
};
use steersman_store::HISTORY_BYTES;
use steersman_store::encryption::Encryption;
use tokio::runtime::Handle;

use crate::controllers::Controllers;
use crate::custom_metrics::Measurements;
use crate::storage::Storage;

/// Admission plug-ins that begin something, and the controllers that end it. Without those, Pods
/// would be refused, Nodes never be scheduled to, and claims never go.
const ENDED_BY: [(&str, &[&str]); 3] = [
    ("ServiceAccount", &["serviceaccount-controller"]),
    ("TaintNodesByCondition", &["node-lifecycle-controller"]),
    (
        "StorageObjectInUseProtection",
        &[
            "persistentvolume-protection-controller",
            "persistentvolumeclaim-protection-controller",
            "volumeattributesclass-protection-controller",
        ],
    ),
];

/// What a cluster is to have.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) nodes: usize,
    pub(crate) node_groups: Vec<NodeGroup>,
    pub(crate) pod_termination: Duration,
    pub(crate) scripts: Scripts,
    pub(crate) outages: Outages,
    /// What is measured of objects, and outside the cluster.
    pub(crate) measurements: Measurements,
    pub(crate) controllers: Controllers,
    pub(crate) load_balancer_pool: Option<Cidr>,
    pub(crate) node_cidrs: Vec<NodeCidrs>,
    pub(crate) service_ranges: ServiceRanges,
    pub(crate) controller_settings: ControllerSettings,
    pub(crate) scheduler: SchedulerConfiguration,
    pub(crate) admission: PluginSelection,
    pub(crate) runtime_config: RuntimeConfig,
    pub(crate) seed: Option<u64>,
    pub(crate) history: Duration,
    pub(crate) history_bytes: u64,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) advertise: Option<IpAddr>,
    pub(crate) storage: Storage,
    pub(crate) lease_duration: Option<Duration>,
    pub(crate) authentication: Authentication,
    pub(crate) audit: Option<Auditing>,
    pub(crate) authorization: AuthorizationMode,
    pub(crate) encryption: Option<Encryption>,
    pub(crate) requests_inflight_max: u32,
    pub(crate) controllers_on: Option<Handle>,
    pub(crate) shutdown: Shutdown,
}

/// How a cluster stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shutdown {
    /// For how long everything goes on after `/readyz` has begun to fail.
    pub(crate) delay: Duration,
    /// How long requests under way may take to end.
    pub(crate) grace: Duration,
}

impl Default for Builder {
    /// Three nodes whose Pods end at once, five minutes of history, no socket, everything in
    /// memory.
    fn default() -> Self {
        Self {
            nodes: 3,
            node_groups: Vec::new(),
            pod_termination: Duration::ZERO,
            scripts: Scripts::default(),
            outages: Outages::default(),
            measurements: Measurements::default(),
            controllers: Controllers::ALL,
            load_balancer_pool: None,
            node_cidrs: Vec::new(),
            service_ranges: ServiceRanges::default(),
            controller_settings: ControllerSettings::default(),
            scheduler: SchedulerConfiguration::default(),
            admission: PluginSelection::default(),
            runtime_config: RuntimeConfig::default(),
            seed: None,
            history: Duration::from_secs(300),
            history_bytes: HISTORY_BYTES,
            listen: None,
            advertise: None,
            storage: Storage::Memory,
            lease_duration: None,
            authentication: Authentication::default(),
            authorization: AuthorizationMode::default(),
            encryption: None,
            shutdown: Shutdown { delay: Duration::ZERO, grace: Duration::from_millis(200) },
            requests_inflight_max: REQUESTS_INFLIGHT_MAX,
            controllers_on: None,
            audit: None,
        }
    }
}

impl Builder {
    /// How many simulated nodes there are.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// More simulated nodes, of several kinds.
    #[must_use]
    pub fn node_groups(mut self, groups: Vec<NodeGroup>) -> Self {
        self.node_groups = groups;
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

    /// Which profiles the scheduler has, and with which plug-ins.
    pub fn scheduler(
        mut self,
        configuration: SchedulerConfiguration,
    ) -> Result<Self, SchedulerConfigurationError> {
        Scheduler::configured(configuration.clone()).check()?;
        self.scheduler = configuration;
        Ok(self)
    }

    /// Where Services of the type `LoadBalancer` get their addresses from, as a cloud would give
    /// them. Nothing listens there. Without a pool they wait for somebody else.
    #[must_use]
    pub fn load_balancer_pool(mut self, pool: Cidr) -> Self {
        self.load_balancer_pool = Some(pool);
        self
    }

    /// Where nodes that have none get ranges for the addresses of their Pods from, as by
    /// `--allocate-node-cidrs` and `--cluster-cidr`: one, or one of each family. Simulated nodes
    /// bring their own.
    #[must_use]
    pub fn node_cidrs(mut self, cidrs: impl IntoIterator<Item = NodeCidrs>) -> Self {
        self.node_cidrs = cidrs.into_iter().collect();
        self
    }

    /// Where Services get their cluster addresses from, as by `--service-cluster-ip-range`. Simulated
    /// nodes and their Pods have addresses of the same families.
    #[must_use]
    pub fn service_ranges(mut self, ranges: ServiceRanges) -> Self {
        self.service_ranges = ranges;
        self
    }

    /// What else controllers are told: grace periods, rates and thresholds, as by flags of
    /// kube-controller-manager.
    #[must_use]
    pub fn controller_settings(mut self, settings: ControllerSettings) -> Self {
        self.controller_settings = settings;
        self
    }

    /// Of which families the addresses of simulated nodes and their Pods are.
    pub(crate) fn families(&self) -> IpFamilies {
        match (self.service_ranges.are_dual_stack(), self.service_ranges.prefer_ipv6()) {
            (false, false) => IpFamilies::V4,
            (false, true) => IpFamilies::V6,
            (true, false) => IpFamilies::V4AndV6,
            (true, true) => IpFamilies::V6AndV4,
        }
    }

    /// Which admission plug-ins are switched on or off by name. Those that begin what a controller
    /// ends are on by default only if it runs: `ServiceAccount` with the controller that makes the
    /// account `default` of each namespace, `TaintNodesByCondition` with the one that takes the taint
    /// away again, and `StorageObjectInUseProtection` with those that take finalizers away.
    #[must_use]
    pub fn admission(mut self, plugins: PluginSelection) -> Self {
        self.admission = plugins;
        self
    }

    /// What is served that Kubernetes serves on request only, as by `--runtime-config`. The controllers
    /// that such an API needs run if it is served: nobody switches their feature gates.
    #[must_use]
    pub fn runtime_config(mut self, served: RuntimeConfig) -> Self {
        self.runtime_config = served;
        self
    }

    /// How requests are authorised: by default nodes by what is related to them, everybody else
    /// by roles and bindings.
    #[must_use]
    pub fn authorization(mut self, mode: AuthorizationMode) -> Self {
        self.authorization = mode;
        self
    }

    /// The plug-ins of the API server.
    pub(crate) fn plugins(&self) -> PluginSelection {
        let mut plugins = self.admission.clone();
        for (plugin, controllers) in ENDED_BY {
            let runs = controllers.iter().all(|name| self.controllers.runs(name));
            plugins = plugins.by_default(plugin, runs);
        }
        plugins
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

    /// How many bytes of the past are kept in memory at most, however young it is: replaced and
    /// deleted objects, for watches and paged lists. Those that need more are told that it has
    /// expired. 64 MiB unless said otherwise.
    #[must_use]
    pub fn history_bytes(mut self, bytes: u64) -> Self {
        self.history_bytes = bytes;
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

    /// How users of the network are known, beside certificates and tokens that the cluster itself
    /// has signed.
    #[must_use]
    pub fn authentication(mut self, authentication: Authentication) -> Self {
        self.authentication = authentication;
        self
    }

    /// What is audited, and who is told: as of kube-apiserver, events of `audit.k8s.io/v1`.
    #[must_use]
    pub fn audit(mut self, auditing: Auditing) -> Self {
        self.audit = Some(auditing);
        self
    }

    /// Which resources are [encrypted](steersman_apiserver::encryption) where they are stored, on
    /// disk or in etcd. In memory they are not.
    #[must_use]
    pub fn encryption(mut self, encryption: Encryption) -> Self {
        self.encryption = Some(encryption);
        self
    }

    /// For how long a cluster that [stops](crate::Cluster::stop) still does everything, while
    /// `/readyz` fails already: time for clients, and what balances load between servers, to go
    /// elsewhere. None by default.
    #[must_use]
    pub fn shutdown_delay(mut self, delay: Duration) -> Self {
        self.shutdown.delay = delay;
        self
    }

    /// How long requests over HTTPS that are under way when the cluster stops may take to end, at
    /// most. A fifth of a second by default.
    #[must_use]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown.grace = grace;
        self
    }

    /// How many requests are served at once, but for those of administrators and probes; others
    /// wait for their turn. Priority levels share these seats.
    #[must_use]
    pub fn requests_inflight_max(mut self, requests: u32) -> Self {
        self.requests_inflight_max = requests;
        self
    }

    /// Runs controllers, scheduler and nodes on a runtime of their own, so that what they do with
    /// large objects keeps nobody waiting whom the API server serves.
    #[must_use]
    pub fn controllers_on(mut self, runtime: Handle) -> Self {
        self.controllers_on = Some(runtime);
        self
    }

    /// The settings of the n-th fork of a cluster that was started from these with this seed. It
    /// has a port of its own.
    pub(crate) fn fork(&self, seed: u64, n: u64, storage: Storage) -> Self {
        let seed = Some(another_seed(seed, n));
        let listen = self.listen.map(|address| SocketAddr::new(address.ip(), 0));
        let (scripts, outages) = (self.scripts.fork(), self.outages.fork());
        let measurements = self.measurements.fork();
        Self { seed, listen, storage, scripts, outages, measurements, ..self.clone() }
    }
}

/// The n-th number that follows from a seed, as far from it as from all others (SplitMix64).
fn another_seed(seed: u64, n: u64) -> u64 {
    let mut mixed = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use steersman_apiserver::PluginSelection;

    use super::{Builder, Controllers, ENDED_BY};

    fn has(builder: &Builder, plugin: &str) -> bool {
        builder.plugins().on().any(|on| on == plugin)
    }

    #[test]
    fn what_a_controller_ends_is_begun_if_it_runs() {
        for (controllers, is_on) in [
            ("*", true),
            ("serviceaccount-controller", true),
            ("none", false),
            ("*,-serviceaccount-controller", false),
        ] {
            let chosen: Controllers = controllers.parse().unwrap();
            let builder = Builder::default().controllers(chosen);
            assert_eq!(has(&builder, "ServiceAccount"), is_on, "{controllers}");
            assert!(has(&builder, "Priority"));
        }
        let all = Builder::default();
        assert!(has(&all, "TaintNodesByCondition"));
        let some: Controllers = "*,-node-lifecycle-controller".parse().unwrap();
        let some = Builder::default().controllers(some);
        assert!(!has(&some, "TaintNodesByCondition"), "nobody would take the taint away");
        assert!(has(&all, "StorageObjectInUseProtection"));
        let chosen: Controllers = "*,-pv-protection".parse().unwrap();
        let without = Builder::default().controllers(chosen);
        assert!(!has(&without, "StorageObjectInUseProtection"), "nobody would let go");
    }

    #[test]
    fn what_is_switched_by_name_stays_so() {
        let names = ENDED_BY.map(|(plugin, _)| plugin);
        let chosen = PluginSelection::new(names, []).unwrap();
        let builder = Builder::default().controllers(false).admission(chosen);
        assert!(names.iter().all(|name| has(&builder, name)));
        let chosen = PluginSelection::new([], ["ServiceAccount"]).unwrap();
        assert!(!has(&Builder::default().admission(chosen), "ServiceAccount"));
    }
}
