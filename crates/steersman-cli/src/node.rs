//! Real nodes: `steersman node`, and the one beside the cluster of `steersman up`.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use steersman::manager::Running;
use steersman::{Manager, shutdown_signal};
use steersman_cluster::join::Membership;
use steersman_cluster::{Cluster, ConnectedNode, ContainerdNode, Housekeeping, User};
use tokio::time::{sleep, timeout};

use crate::kubeconfig;
use crate::node_flags::{NodeCommand, NodeFlags, Runtime, Thresholds};

/// How long Pods may take to go that are nobody's any more, and how often it is looked.
const CLEAR_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// This machine as a node, as the flags say.
fn settings(Runtime { socket }: Runtime, flags: NodeFlags) -> ContainerdNode {
    let mut housekeeping = Housekeeping::default();
    if let Some(Thresholds(hard)) = flags.eviction_hard {
        housekeeping.eviction_hard = hard;
    }
    ContainerdNode {
        socket,
        name: flags.node_name,
        root: flags.node_dir,
        logs: flags.pod_logs_dir,
        cgroup: flags.cgroup_root,
        pods_max: flags.max_pods,
        address: flags.node_ip,
        cluster_dns: flags.cluster_dns,
        cluster_domain: flags.cluster_domain,
        manifests: flags.pod_manifest_path,
        housekeeping,
        ..ContainerdNode::default()
    }
}

/// The same, once its container runtime has answered.
pub(crate) async fn connect(runtime: Runtime, flags: NodeFlags) -> Result<ConnectedNode, String> {
    settings(runtime, flags).connect().await.map_err(|error| error.to_string())
}

/// This machine as a node of a cluster in this process.
pub(crate) struct Beside {
    pub(crate) name: String,
    pub(crate) running: Running,
    /// Where it keeps what belongs to Pods.
    directory: PathBuf,
}

impl Beside {
    pub(crate) fn join(cluster: &Cluster, node: ConnectedNode, directory: PathBuf) -> Self {
        let name = node.name().to_owned();
        let user = User::known(&format!("system:node:{name}"), &["system:nodes"]);
        let running = node.install(Manager::new(cluster.client_as(user))).start();
        Self { name, running, directory }
    }

    /// Takes away its Pods, for they would be nobody's without their cluster.
    pub(crate) async fn clear(&self, cluster: &Cluster) {
        let client = cluster.client();
        let bound = ListParams::default().fields(&format!("spec.nodeName={}", self.name));
        let pods = Api::<Pod>::all(client.clone()).list(&bound).await;
        let pods = pods.map(|list| list.items).unwrap_or_default();
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        for pod in &pods {
            let namespace = pod.namespace().unwrap_or_default();
            let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
            let _ = pods.delete(&pod.name_any(), &at_once).await; // somebody may have been faster
        }
        let places = pods.iter().filter_map(ResourceExt::uid);
        let places: Vec<PathBuf> =
            places.map(|uid| self.directory.join("pods").join(uid)).collect();
        let gone = async {
            while places.iter().any(|place| place.exists()) {
                sleep(LOOK).await;
            }
        };
        if timeout(CLEAR_MAX, gone).await.is_err() {
            eprintln!("warning: something is left of Pods of the node {}", self.name);
        }
    }
}

/// Is a node until it is asked to stop.
pub(crate) fn run(command: NodeCommand) -> Result<(), String> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(serve(command))
}

async fn serve(command: NodeCommand) -> Result<(), String> {
    let settings = settings(command.runtime, command.node);
    let (name, directory) = (settings.node_name(), settings.root.clone());
    // Nobody joins who could not be a node.
    let node = settings.connect().await.map_err(|error| error.to_string())?;
    let member = match command.kubeconfig {
        Some(_) => None,
        None => command.join.membership(&directory, &name).await?,
    };
    let manager = match member {
        Some(member) => managed(member),
        None => {
            let config = kubeconfig::cluster(command.kubeconfig.as_deref()).await?;
            Manager::from_config(config).map_err(|error| error.to_string())?
        }
    };
    say!("node {}; Ctrl-C stops it, its Pods run on", node.name());
    let manager = node.install(manager);
    manager.run_until(shutdown_signal()).await.map_err(|error| error.to_string())
}

/// What works for a member of a cluster, and keeps it one.
fn managed(member: Membership) -> Manager {
    let manager = Manager::new(member.client());
    manager.with_runnable("certificate-renewal", |_, stop| async move {
        stop.run_until_cancelled(member.keep()).await;
        Ok(())
    })
}
