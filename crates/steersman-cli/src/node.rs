//! A real node: `steersman node`, and `steersman-node` that does nothing else.

use std::thread;

use steersman::{Manager, shutdown_signal};
use steersman_cluster::join::Membership;
use steersman_cluster::{ConnectedNode, ContainerdNode, Housekeeping};
use tokio::runtime::Builder;

use crate::kubeconfig;
use crate::node_flags::{NodeCommand, NodeFlags, Runtime, Thresholds};

/// As many threads work at most, however many processors there are: a node waits for its runtime most
/// of the time, and each thread keeps memory for itself.
const WORKERS_MAX: usize = 2;

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

/// Is a node until it is asked to stop.
pub(crate) fn run(command: NodeCommand) -> Result<(), String> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let workers = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build();
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
