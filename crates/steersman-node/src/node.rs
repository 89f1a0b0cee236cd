//! A real node: this machine, whose Pods run in the containers of a container runtime.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::Manager;
use steersman::events::EventForm;
use steersman::manager::Group;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::cri::wire::VersionResponse;
use crate::cri::{Cri, CriError};
use crate::eviction::Signal;
use crate::groups::Shape;
use crate::health::{self, Sight};
use crate::heartbeats::Heartbeats;
use crate::housekeeping::Housekeeping;
use crate::machine::{self, Kept, Resources};
use crate::outages::Outages;
use crate::pods::{self, Signals};
use crate::registration::{FEATURES, Health, Machine, Network};
use crate::runtime::real::{Cgroups, ClusterDns, Places, Real, Settings};

/// How long a runtime may take to answer after it was started.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// This machine as a node: its Pods run in real containers, through a container runtime that speaks
/// CRI, such as containerd. Needs root.
///
/// The manager that it is [installed](ConnectedNode::install) in acts for it alone: its client is
/// that of the user `system:node:NAME`, or of somebody who may do as much.
#[derive(Clone, Debug)]
pub struct ContainerdNode {
    /// Where the runtime listens.
    pub socket: PathBuf,
    /// The name of the Node; that of the machine if there is none.
    pub name: Option<String>,
    /// Where files of Pods are kept that are mounted into containers.
    pub root: PathBuf,
    /// Where the logs of containers are kept.
    pub logs: PathBuf,
    /// Where links to them are kept, for those who collect logs.
    pub log_links: PathBuf,
    /// Below which cgroup Pods have theirs.
    pub cgroup: String,
    /// How many Pods run here at most.
    pub pods_max: u32,
    /// The address by which others reach this machine; found out if there is none.
    pub address: Option<IpAddr>,
    /// Who answers names in the cluster. Without anybody, Pods ask whom the machine asks.
    pub cluster_dns: Vec<IpAddr>,
    /// What names of the cluster end with.
    pub cluster_domain: String,
    /// How often files of volumes are brought up to date.
    pub sync_period: Duration,
    /// What is removed so that the machine does not run full, and when.
    pub housekeeping: Housekeeping,
    /// Where the manifests of static Pods are, if there are any.
    pub manifests: Option<PathBuf>,
}

impl Default for ContainerdNode {
    /// As Debian's containerd and a kubelet have it.
    fn default() -> Self {
        Self {
            socket: Self::SOCKET.into(),
            name: None,
            root: "/var/lib/steersman/node".into(),
            logs: "/var/log/pods".into(),
            log_links: "/var/log/containers".into(),
            cgroup: "/kubepods".into(),
            pods_max: 110,
            address: None,
            cluster_dns: Vec::new(),
            cluster_domain: "cluster.local".into(),
            sync_period: Duration::from_secs(60),
            housekeeping: Housekeeping::default(),
            manifests: None,
        }
    }
}

/// Why a machine cannot be a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its container runtime cannot be asked.
    #[error("{0}")]
    Runtime(String),
    /// It cannot be kept as it is told.
    #[error("{0}")]
    Housekeeping(String),
    /// It cannot be a node as it is.
    #[error("this machine cannot be a node: {what}: {why}")]
    Machine {
        /// What was tried.
        what: String,
        /// What the system said.
        why: io::Error,
    },
}

impl From<CriError> for NodeError {
    fn from(error: CriError) -> Self {
        Self::Runtime(error.to_string())
    }
}

/// A machine whose container runtime answers.
pub struct ConnectedNode {
    cri: Cri,
    machine: Machine,
    settings: Settings,
    health: watch::Sender<Health>,
    sight: Sight,
    manifests: Option<PathBuf>,
}

impl std::fmt::Debug for ConnectedNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectedNode").field("machine", &self.machine).finish_non_exhaustive()
    }
}

/// Who the runtime is. One that is just being started has a socket and does not answer yet.
async fn first_answer(cri: &Cri, socket: &Path) -> Result<VersionResponse, CriError> {
    let begun = Instant::now();
    loop {
        match cri.version().await {
            Err(error) if socket.exists() && begun.elapsed() < STARTS_WITHIN => {
                tracing::info!(%error, "waiting for the container runtime");
                sleep(STARTS_WITHIN / 30).await;
            }
            answer => return answer,
        }
    }
}

impl ContainerdNode {
    /// Where containerd listens by itself.
    pub const SOCKET: &str = "/run/containerd/containerd.sock";

    /// The name of the Node.
    pub fn node_name(&self) -> String {
        self.name.clone().unwrap_or_else(machine::name)
    }

    /// Asks the container runtime who it is, and looks what the machine has.
    pub async fn connect(self) -> Result<ConnectedNode, NodeError> {
        let cri = Cri::at(&self.socket)?;
        let version = first_answer(&cri, &self.socket).await?;
        let failed = |what: &str| {
            let what = what.to_owned();
            move |why| NodeError::Machine { what, why }
        };
        let policies = self.housekeeping.policies();
        let policies = policies.map_err(|error| NodeError::Housekeeping(error.to_string()))?;
        for directory in [&self.root, &self.logs, &self.log_links] {
            let what = format!("making {}", directory.display());
            std::fs::create_dir_all(directory).map_err(failed(&what))?;
        }
        let cgroups = Cgroups::of_this_machine(&self.cgroup).map_err(failed("reading cgroups"))?;
        let resources = Resources::of_this_machine(&self.root, self.pods_max);
        let resources = resources.map_err(failed("reading what it has"))?;
        let allocatable = resources.allocatable(Kept {
            memory: policies.kept(Signal::MemoryAvailable, resources.memory),
            disk: policies.kept(Signal::NodeFsAvailable, resources.disk),
        });
        let name = self.node_name();
        let address = self.address.unwrap_or_else(machine::address).to_string();
        let (health, sight) = health::first(&cri).await;
        let (health, watched) = watch::channel(health);
        let runtime = version.runtime_name;
        let machine = Machine {
            agent: None,
            addresses: vec![address.clone()],
            network: Network::OfRuntime,
            capacity: resources.capacity(),
            allocatable: allocatable.clone(),
            system: machine::system(format!("{runtime}://{}", version.runtime_version)),
            features: FEATURES.map(str::to_owned).into(),
            health: Some(watched),
            shape: Shape::default(),
            name: name.clone(),
        };
        let servers = self.cluster_dns.iter().map(IpAddr::to_string).collect();
        let settings = Settings {
            cri: cri.clone(),
            runtime,
            places: Places { root: self.root, logs: self.logs, links: self.log_links },
            cgroups,
            node: name,
            memory: i64::try_from(resources.memory).unwrap_or(i64::MAX),
            dns: ClusterDns { servers, domain: self.cluster_domain },
            addresses: vec![address],
            allocatable,
            sync_period: self.sync_period,
            policies,
        };
        let manifests = self.manifests;
        Ok(ConnectedNode { cri, machine, settings, health, sight, manifests })
    }
}

impl ConnectedNode {
    /// The name of the Node.
    pub fn name(&self) -> &str {
        &self.machine.name
    }

    /// Adds this node to a manager, which sees the Pods of this node and no others.
    #[must_use]
    pub fn install(self, manager: Manager) -> Manager {
        let Self { cri, machine, settings, health, sight, manifests } = self;
        let recorder = manager.recorder().form(EventForm::Counted);
        let recorder = recorder.reporting("kubelet").field_manager("kubelet");
        let runtime = Real::new(settings, &recorder);
        let pressure = runtime.conditions();
        let outages = Outages::default();
        let heartbeats = Heartbeats::always(vec![machine.clone()], &outages);
        heartbeats.tell_by(&recorder);
        let bound = format!("spec.nodeName={}", machine.name);
        let machines = Arc::new([(machine.name.clone(), machine.clone())].into());
        let (_, unscripted) = watch::channel(());
        let signals = Signals { scripts: unscripted, outages };
        let workers = pods::workers(machines, runtime.clone(), signals);
        let own = format!("metadata.name={}", machine.name);
        // Who has written what is half of a Pod, and no business of a node.
        let manager = manager.cache::<Pod>(|cache| cache.fields(bound).strip_managed_fields());
        let manager = manager.cache::<Node>(|cache| cache.fields(own)).with(workers.controller);
        let kept = runtime.clone();
        let mut static_pods =
            workers.static_pods.of(machine, recorder, move |uids| kept.keep(uids));
        if let Some(directory) = manifests {
            static_pods = static_pods.from(directory);
        }
        manager.with_runnable_in(
            Group::LeaderElected,
            "node-agent",
            |client, shutdown| async move {
                let client = client.with_field_manager("kubelet");
                // Before anybody looks for what belongs to no Pod.
                static_pods.read();
                let works = async {
                    futures::join!(
                        static_pods.run(client.clone()),
                        heartbeats.run(client.clone()),
                        health::run(&cri, sight, || runtime.relisted(), &health, pressure),
                        runtime.run(client.clone()),
                    );
                };
                tokio::select! {
                    () = works => {}
                    () = shutdown.cancelled() => {}
                }
                Ok(())
            },
        )
    }
}
