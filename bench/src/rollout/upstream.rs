//! Kubernetes' own control plane, from a directory with its programs.
//!
//! As it is run in practice: the clients of kube-controller-manager may ask 20 times a second, in
//! bursts 30 times, and those of kube-scheduler 50 and 100 times, which are the defaults. There is
//! only one of each, so nobody is elected, and nobody watches over nodes, which here only exist as
//! objects.

use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::task::JoinHandle;

use super::kubelet;
use super::user::User;
use crate::kubernetes::Kubernetes;

const ALONE: [&str; 2] = ["--leader-elect=false", "--secure-port=0"];

/// The running control plane; it ends when dropped.
pub(super) struct Upstream {
    pub(super) kubernetes: Kubernetes,
    kubelet: JoinHandle<()>,
}

impl Upstream {
    /// Starts the programs of a directory, with so many nodes.
    pub(super) async fn start(directory: &Path, nodes: usize) -> Result<Self, String> {
        let mut kubernetes = Kubernetes::start(&program(directory, "kube-apiserver")?)?;
        kubernetes.ready().await?;
        let user = User::of(kubernetes.kubeconfig()).await?;
        kubelet::register(&user, nodes).await?;
        let mut manager = Command::new(program(directory, "kube-controller-manager")?);
        manager.args(ALONE).arg("--controllers=*,-node-lifecycle-controller");
        let mut scheduler = Command::new(program(directory, "kube-scheduler")?);
        scheduler.args(ALONE);
        for (name, mut command) in
            [("kube-controller-manager", manager), ("kube-scheduler", scheduler)]
        {
            command.arg(format!("--kubeconfig={}", kubernetes.kubeconfig().display()));
            kubernetes.run(name, command)?;
        }
        let kubelet = tokio::spawn(async move {
            if let Err(error) = kubelet::run(user).await {
                eprintln!("rollout: the kubelet of the rival has ended: {error}");
            }
        });
        Ok(Self { kubernetes, kubelet })
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.kubelet.abort();
    }
}

fn program(directory: &Path, name: &str) -> Result<PathBuf, String> {
    let program = directory.join(name);
    let is_there = program.is_file();
    is_there
        .then_some(program)
        .ok_or_else(|| format!("there is no {name} in {}", directory.display()))
}
