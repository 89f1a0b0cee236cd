//! Real nodes: `steersman node`, and the one beside the cluster of `steersman up`.

use steersman::manager::Running;
use steersman::{Manager, shutdown_signal};
use steersman_cluster::{Cluster, ConnectedNode, ContainerdNode, User};

use crate::kubeconfig;
use crate::node_flags::{NodeCommand, NodeFlags, Runtime};

/// This machine as a node, once its container runtime has answered.
pub(crate) async fn connect(
    Runtime { socket }: Runtime,
    flags: NodeFlags,
) -> Result<ConnectedNode, String> {
    let node = ContainerdNode {
        socket,
        name: flags.node_name,
        root: flags.node_dir,
        logs: flags.pod_logs_dir,
        cgroup: flags.cgroup_root,
        pods_max: flags.max_pods,
        address: flags.node_ip,
        cluster_dns: flags.cluster_dns,
        cluster_domain: flags.cluster_domain,
        ..ContainerdNode::default()
    };
    node.connect().await.map_err(|error| error.to_string())
}

/// Lets a machine be a node of a cluster in this process.
pub(crate) fn join(cluster: &Cluster, node: ConnectedNode) -> Running {
    let user = User::known(&format!("system:node:{}", node.name()), &["system:nodes"]);
    node.install(Manager::new(cluster.client_as(user))).start()
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
    let config = kubeconfig::cluster(command.kubeconfig.as_deref()).await?;
    let node = connect(command.runtime, command.node).await?;
    let manager = Manager::from_config(config).map_err(|error| error.to_string())?;
    say!("node {}; Ctrl-C stops it, its Pods run on", node.name());
    let manager = node.install(manager);
    manager.run_until(shutdown_signal()).await.map_err(|error| error.to_string())
}
