//! How fast Pods are scheduled, through the API: our program beside kube-scheduler with its API
//! server, over etcd, where somebody gives a directory with those programs.
//!
//! One [user](User) creates nodes, which are only objects, and Pods of each of the
//! [workloads], and hears by a watch of those without a node when the last one has got one that
//! somebody waits for. Time runs from the first creation, as in Kubernetes' own benchmark of its
//! scheduler. User, API server and scheduler share the machine. kube-scheduler may ask 5,000 times a
//! second, as there.

mod workloads;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::kubernetes::Kubernetes;
use crate::program::Program;
use crate::report::{Figure, Report, percentile_of};
use crate::rollout::user::User;
use workloads::{AWAITED, IMPORTANT, WORKLOADS, Workload, hopeless, node, unawaited};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const CONCURRENCY: usize = 32;
/// Pods that are scheduled one after the other, to see how long one takes.
const ALONE: usize = 300;
/// How many Pods are scheduled where the number of nodes grows.
const GROWTH_PODS: usize = 5_000;
const GROWTH_NODES: [usize; 4] = [100, 500, 1_000, 5_000];
/// How many times what upstream asks of itself we want.
const GOAL: f64 = 10.0;
/// How often a Pod of those comes for which nobody waits, as upstream has it.
const CHURN: Duration = Duration::from_millis(200);
/// How long a new server may take to publish what everybody needs.
const SETTLE: Duration = Duration::from_secs(1);

/// How much the benchmark `scheduler` measures.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Extent {
    /// scheduler: how many nodes there are.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    nodes: usize,
    /// scheduler: only the workload of this name.
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
}

/// Whose scheduler it is.
enum System {
    Ours(Program),
    Theirs(Kubernetes),
}

impl System {
    fn kubeconfig(&self) -> &Path {
        match self {
            Self::Ours(program) => program.kubeconfig(),
            Self::Theirs(kubernetes) => kubernetes.kubeconfig(),
        }
    }

    async fn ours() -> Result<Self, String> {
        let program = Program::start(&["--nodes", "0", "--controllers", "kube-scheduler"])?;
        program.ready().await.map_err(|error| error.to_string())?;
        Ok(Self::Ours(program))
    }

    async fn theirs(directory: &Path) -> Result<Self, String> {
        let mut kubernetes = Kubernetes::start(&directory.join("kube-apiserver"))?;
        kubernetes.ready().await?;
        let configuration = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection":
                {"kubeconfig": kubernetes.kubeconfig(), "qps": 5_000, "burst": 5_000},
            "leaderElection": {"leaderElect": false},
        });
        let file = kubernetes.kubeconfig().with_file_name("scheduler.yaml");
        fs::write(&file, configuration.to_string()).map_err(|error| error.to_string())?;
        let mut scheduler = Command::new(directory.join("kube-scheduler"));
        scheduler.arg("--config").arg(&file).arg("--secure-port=0");
        kubernetes.run("kube-scheduler", scheduler)?;
        Ok(Self::Theirs(kubernetes))
    }
}

/// Runs the benchmark; with a directory, also for the programs in it.
pub(crate) fn run(
    extent: &Extent,
    upstream: Option<&PathBuf>,
    report: &mut Report,
) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let wanted =
        |workload: &&Workload| extent.workload.as_deref().is_none_or(|name| name == workload.name);
    for workload in WORKLOADS.iter().filter(wanted) {
        let ours = runtime.block_on(throughput(System::ours(), workload, extent.nodes))?;
        tell(report, workload, ours);
        if let Some(directory) = upstream {
            let theirs = throughput(System::theirs(directory), workload, extent.nodes);
            let theirs = runtime.block_on(theirs)?;
            let metric = "  kube-scheduler in the same run; ours is better by";
            report.figure(&Figure { metric, value: theirs, unit: "/s", goal: "" });
            report.note(&format!("{:.1}x", ours / theirs));
        }
    }
    if extent.workload.is_none() {
        runtime.block_on(alone(extent.nodes, report))?;
        runtime.block_on(growth(report))?;
    }
    Ok(())
}

fn tell(report: &mut Report, workload: &Workload, rate: f64) {
    let metric = format!("{}, Pods scheduled", workload.name);
    let goal = workload.threshold.map_or_else(String::new, |threshold| {
        let wanted = threshold * GOAL;
        let verdict = if rate >= wanted { "met" } else { "MISSED" };
        format!("goal: {wanted:.0}, {verdict}")
    });
    report.figure(&Figure { metric: &metric, value: rate, unit: "/s", goal: &goal });
}

/// A new cluster of so many nodes, and somebody who uses it.
async fn cluster(
    system: impl Future<Output = Result<System, String>>,
    nodes: usize,
    zones: &[&str],
) -> Result<(System, User), String> {
    let system = system.await?;
    let user = User::of(system.kubeconfig()).await?;
    tokio::time::sleep(SETTLE).await;
    // Of an API server without controllers; it may have one that is quicker.
    let _ = user.create(ACCOUNTS, &json!({"metadata": {"name": "default"}})).await;
    let class = json!({"metadata": {"name": IMPORTANT}, "value": 10});
    user.create(CLASSES, &class).await?;
    create(&user, NODES, (0..nodes).map(|number| node(number, zones))).await?;
    // Nobody says that they are ready but they themselves.
    let untainted = json!({"spec": {"taints": null}});
    let patches = (0..nodes).map(|number| format!("{NODES}/node-{number}"));
    let patched = stream::iter(patches).map(|path| {
        let (user, patch) = (&user, &untainted);
        async move { user.merge(&path, patch).await }
    });
    patched.buffer_unordered(CONCURRENCY).try_for_each(|_| async { Ok(()) }).await?;
    Ok((system, user))
}

async fn create(
    user: &User,
    collection: &str,
    objects: impl Iterator<Item = Value>,
) -> Result<(), String> {
    let created =
        stream::iter(objects).map(|object| async move { user.create(collection, &object).await });
    created.buffer_unordered(CONCURRENCY).try_for_each(|_| async { Ok(()) }).await
}

/// Creates Pods and waits until each has a node; gives the time.
async fn schedule(
    user: &User,
    objects: impl Iterator<Item = Value>,
    count: usize,
) -> Result<Duration, String> {
    let awaited = format!("fieldSelector=spec.nodeName%3D&labelSelector=color%3D{AWAITED}");
    let mut pending = user.follow_slim(PODS, &awaited).await?;
    let begun = Instant::now();
    let mut seen = 0;
    // Every Pod is without a node first, and is then no longer among them.
    let mut last = pending.objects().count();
    let all = pending.each(|left, changed| {
        seen += usize::from(changed.is_some() && left.len() > last);
        last = left.len();
        seen < count || !left.is_empty()
    });
    let created = create(user, PODS, objects);
    let (created, all) = tokio::join!(created, all);
    created.and(all)?;
    Ok(begun.elapsed())
}

/// How many Pods of a workload are scheduled in a second.
async fn throughput(
    system: impl Future<Output = Result<System, String>>,
    workload: &Workload,
    nodes: usize,
) -> Result<f64, String> {
    let (_system, user) = cluster(system, nodes, workload.zones).await?;
    eprintln!("scheduler: {}: {nodes} nodes are there", workload.name);
    create(&user, PODS, (0..workload.hopeless).map(hopeless)).await?;
    let (count, pod) = workload.initial;
    let initial = (0..count).map(|number| with_name(pod(number), "initial"));
    if count > 0 {
        schedule(&user, initial, count).await?;
    }
    let (count, pod) = workload.measured;
    let took = tokio::select! {
        took = schedule(&user, (0..count).map(pod), count) => took?,
        Err(error) = churn(&user, workload.churn) => return Err(error),
    };
    Ok(count as f64 / took.as_secs_f64())
}

/// Creates a Pod every now and then, forever.
async fn churn(user: &User, pod: Option<fn(usize) -> Value>) -> Result<(), String> {
    let Some(pod) = pod else { return Ok(()) };
    let mut ticks = tokio::time::interval(CHURN);
    for number in 0.. {
        ticks.tick().await;
        let pod = with_name(unawaited(pod(number)), "churn");
        user.create(PODS, &pod).await?;
    }
    Ok(())
}

/// The same Pod of another name.
fn with_name(mut pod: Value, prefix: &str) -> Value {
    let name = format!("{prefix}-{}", pod["metadata"]["name"].as_str().unwrap_or_default());
    pod["metadata"]["name"] = name.into();
    pod
}

/// How long it takes until a Pod has a node that has nobody before it.
async fn alone(nodes: usize, report: &mut Report) -> Result<(), String> {
    let (_system, user) = cluster(System::ours(), nodes, WORKLOADS[0].zones).await?;
    let (_, pod) = WORKLOADS[0].measured;
    let mut times = Vec::new();
    for number in 0..ALONE {
        let took = schedule(&user, std::iter::once(pod(number)), 1).await?;
        times.push(took);
    }
    for (metric, share) in [("one Pod alone, p50", 0.5), ("  p99", 0.99)] {
        let value = percentile_of(&mut times, share);
        report.figure(&Figure { metric, value, unit: "ms", goal: "" });
    }
    Ok(())
}

/// How the throughput changes with the number of nodes.
async fn growth(report: &mut Report) -> Result<(), String> {
    let mut rates = BTreeMap::new();
    for nodes in GROWTH_NODES {
        let (_system, user) = cluster(System::ours(), nodes, WORKLOADS[0].zones).await?;
        let pods = (0..GROWTH_PODS.min(nodes * 30)).map(WORKLOADS[0].measured.1);
        let count = pods.len();
        let took = schedule(&user, pods, count).await?;
        rates.insert(nodes, count as f64 / took.as_secs_f64());
    }
    for (nodes, value) in &rates {
        let metric = format!("basic, {nodes} nodes");
        report.figure(&Figure { metric: &metric, value: *value, unit: "/s", goal: "" });
    }
    Ok(())
}
