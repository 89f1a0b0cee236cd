//! What is said of a real node on the command line.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use steersman_cluster::ContainerdNode;

use crate::join_flags::JoinFlags;

/// What `steersman node` is told.
#[derive(Args)]
pub(crate) struct NodeCommand {
    /// Where the cluster is, and who this node is to it: system:node:NAME in the group system:nodes,
    /// or somebody who may do as much [default: what it was before by joining, or as kubectl finds
    /// it].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server", "token"])]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Which container runtime.
    #[arg(long, value_name = "containerd[=SOCKET]", default_value = "containerd")]
    pub(crate) runtime: Runtime,
    #[command(flatten)]
    pub(crate) node: NodeFlags,
    #[command(flatten, next_help_heading = "Joining a cluster")]
    pub(crate) join: JoinFlags,
}

/// How a real node is.
#[derive(Args)]
pub(crate) struct NodeFlags {
    /// The name of the real node [default: that of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// Where the real node keeps what it mounts into containers.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/steersman/node")]
    pub(crate) node_dir: PathBuf,
    /// Where the logs of real containers are kept.
    #[arg(long, value_name = "DIR", default_value = "/var/log/pods")]
    pub(crate) pod_logs_dir: PathBuf,
    /// Below which cgroup real Pods have theirs.
    #[arg(long, value_name = "PATH", default_value = "/kubepods")]
    pub(crate) cgroup_root: String,
    /// How many Pods run on the real node at most.
    #[arg(long, value_name = "N", default_value_t = 110, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_pods: u32,
    /// The address by which others reach the real node [default: the one that packets to afar leave
    /// from].
    #[arg(long, value_name = "ADDR")]
    pub(crate) node_ip: Option<IpAddr>,
    /// Who answers names in the cluster, for Pods of the real node. Without anybody, they ask whom
    /// the machine asks.
    #[arg(long, value_name = "ADDR,ADDR", value_delimiter = ',')]
    pub(crate) cluster_dns: Vec<IpAddr>,
    /// What names of the cluster end with.
    #[arg(long, value_name = "NAME", default_value = "cluster.local")]
    pub(crate) cluster_domain: String,
    /// Where the manifests of static Pods are: Pods that the real node runs by itself.
    #[arg(long, value_name = "DIR")]
    pub(crate) pod_manifest_path: Option<PathBuf>,
    /// Below which amounts the real node evicts Pods; nothing means never [default: a kubelet's].
    #[arg(long, value_name = "SIGNAL<AMOUNT,...")]
    pub(crate) eviction_hard: Option<Thresholds>,
}

/// Amounts by signal, such as `memory.available<100Mi,nodefs.available<10%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thresholds(pub(crate) BTreeMap<String, String>);

impl std::str::FromStr for Thresholds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        let read = parts.map(|part| match part.split_once('<') {
            Some((signal, amount)) => Ok((signal.to_owned(), amount.to_owned())),
            None => Err(format!("{part:?} is not SIGNAL<AMOUNT")),
        });
        read.collect::<Result<_, _>>().map(Self)
    }
}

/// A container runtime on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// Where it listens.
    pub(crate) socket: PathBuf,
}

impl std::str::FromStr for Runtime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "containerd" => Ok(Self { socket: ContainerdNode::SOCKET.into() }),
            Some(("containerd", socket)) if socket.starts_with('/') => {
                Ok(Self { socket: socket.into() })
            }
            Some(("containerd", _)) => Err("the socket is not an absolute path".to_owned()),
            _ => Err("only containerd is known: containerd or containerd=/path/of/its.sock".into()),
        }
    }
}
