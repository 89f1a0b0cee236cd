//! The parts of the benchmark that run as processes of their own, so that the memory of each is
//! its own: `steersman-bench child ROLE …`, started by the benchmark itself.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand, ValueEnum};
use k8s_openapi::api::core::v1::Pod;
use steersman::workqueue::WorkQueue;
use steersman_bench_server::pods::Pods;
use steersman_bench_server::{Objects, SEED};

use crate::informer::kube_runtime::KubeRuntime;
use crate::informer::queue::{self, Size};
use crate::informer::steersman::Steersman;
use crate::informer::subject;
use crate::processes::wire::figure;
use crate::processes::{self, server};
use crate::study;

/// What the process is told to be.
#[derive(Parser)]
struct Child {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// The server.
    Serve { kubeconfig: PathBuf, kind: Kind, count: usize },
    /// An informer.
    Informer { system: System, kubeconfig: PathBuf, updates: usize },
    /// A work queue.
    Queue { operations: usize, delayed: usize },
    /// The controller of the study.
    Study { kubeconfig: PathBuf, shards: usize, most: usize },
    /// A plain map of Pods, to compare reads with.
    Map { pods: usize },
}

/// What a server serves.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Pods,
    Widgets,
}

/// The informers that are written in Rust.
#[derive(Clone, Copy, ValueEnum)]
enum System {
    Steersman,
    SteersmanTyped,
    KubeRuntime,
}

/// Does what the arguments behind `child` say.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    processes::until_ended(act(Child::parse_from(arguments).role))
}

async fn act(role: Role) -> Result<(), String> {
    match role {
        Role::Serve { kubeconfig, kind: Kind::Pods, count } => {
            server::run(&kubeconfig, Objects::Pods(count)).await
        }
        Role::Serve { kubeconfig, kind: Kind::Widgets, count } => {
            server::run(&kubeconfig, Objects::Widgets(count)).await
        }
        Role::Informer { system, kubeconfig, updates } => match system {
            System::Steersman => subject::measure::<Steersman<false>>(&kubeconfig, updates).await,
            System::SteersmanTyped => {
                subject::measure::<Steersman<true>>(&kubeconfig, updates).await
            }
            System::KubeRuntime => subject::measure::<KubeRuntime>(&kubeconfig, updates).await,
        },
        Role::Queue { operations, delayed } => {
            queue::measure::<WorkQueue<queue::Key>>(Size { operations, delayed }).await
        }
        Role::Study { kubeconfig, shards, most } => {
            study::subject::run(&kubeconfig, shards, most).await
        }
        Role::Map { pods } => map(pods),
    }
}

/// Reads from a plain map, with nothing around it.
fn map(count: usize) -> Result<(), String> {
    let mut pods = Pods::new(SEED, count);
    let mut map = HashMap::with_capacity(count);
    for _ in 0..count {
        let pod: Pod =
            serde_json::from_value(pods.next_pod()).map_err(|error| error.to_string())?;
        let namespace = &pod.metadata.namespace;
        let name = &pod.metadata.name;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        map.insert(format!("{}/{}", part(namespace), part(name)), Arc::new(pod));
    }
    let hot: Vec<String> = map.keys().take(subject::HOT).cloned().collect();
    figure("get_ns", subject::hot_reads(&hot, |key| map.get(key).cloned()))
}
