//! A day of a whole cluster on virtual time, in this process: how long it really takes.
//!
//! Nodes, controllers and scheduler run on a paused clock, which goes on when nobody has anything to do.
//! Deployments come, and in each hour one of 24 of them is rolled over; otherwise Leases are renewed if
//! somebody looks, and nobody does.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_cluster::Cluster;
use tokio::runtime;
use tokio::time::{Instant, sleep};

use super::{REPLICAS, Size, deployment, is_complete};
use crate::report::{Figure, Report};

/// The hours of a day.
const HOURS: usize = 24;
const HOUR: Duration = Duration::from_secs(3600);
/// How often it is looked whether all run, on the virtual clock.
const LOOKED_EVERY: Duration = Duration::from_secs(1);

/// Really passed time; tokio's clock stands still.
struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "tokio's clock is the virtual one here")]
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Lets a day pass for clusters of these sizes.
pub(super) fn run(sizes: &[Size], report: &mut Report) -> Result<(), String> {
    let mut days = Vec::new();
    for size in sizes {
        let mut builder = runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        days.push((size.pods, runtime.block_on(day(*size, report))?));
    }
    if let ([(few, first), .., (many, last)], true) = (&days[..], days.len() > 1) {
        let slope = (last / first).ln() / (*many as f64 / *few as f64).ln();
        report.note(&format!("a virtual day grows with the power {slope:.2} of the Pods"));
    }
    Ok(())
}

/// Lets a day pass; gives the seconds that it really took, with the Pods' start.
async fn day(Size { nodes, pods }: Size, report: &mut Report) -> Result<f64, String> {
    let mut tell = |metric: &str, value: f64, unit: &str, goal: &str| {
        let metric = format!("{nodes} nodes, {pods} Pods, virtual: {metric}");
        report.figure(&Figure { metric: &metric, value, unit, goal });
    };
    let whole = Stopwatch::start();
    let cluster = Cluster::builder().nodes(nodes).start().await;
    let cluster = cluster.map_err(|error| error.to_string())?;
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let count = pods.div_ceil(REPLICAS);
    let begun = Instant::now();
    for number in 0..count {
        let object = serde_json::from_value(deployment(number)).map_err(|it| it.to_string())?;
        let created = deployments.create(&PostParams::default(), &object).await;
        created.map_err(|error| error.to_string())?;
    }
    complete(&deployments, count).await?;
    tell("all Running after", begun.elapsed().as_secs_f64(), "virtual s", "");
    tell("  which really took", whole.seconds(), "s", "");
    let mut hours = Vec::new();
    for hour in 0..HOURS {
        let passing = Stopwatch::start();
        let end = Instant::now() + HOUR;
        roll(&deployments, (0..count).skip(hour).step_by(HOURS), hour).await?;
        complete(&deployments, count).await?;
        sleep(end.saturating_duration_since(Instant::now())).await;
        hours.push(passing.seconds());
    }
    tell("the first hour took", hours[0], "s", "");
    tell("  the last", hours[HOURS - 1], "s", "");
    let taken = whole.seconds();
    tell("the day took", taken, "s", "goal: minutes for 5,000 nodes and 50,000 Pods");
    tell("  resident", resident().unwrap_or_default(), "MB", "");
    cluster.stop().await;
    Ok(taken)
}

/// Rolls Deployments over.
async fn roll(
    deployments: &Api<Deployment>,
    numbers: impl Iterator<Item = usize>,
    hour: usize,
) -> Result<(), String> {
    let annotations = json!({"rolled": format!("{hour}")});
    let change = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
    for number in numbers {
        let name = format!("web-{number}");
        let patched =
            deployments.patch(&name, &PatchParams::default(), &Patch::Merge(&change)).await;
        patched.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Waits until so many Deployments have all their Pods.
async fn complete(deployments: &Api<Deployment>, count: usize) -> Result<(), String> {
    loop {
        let found = deployments.list(&ListParams::default()).await;
        let found = found.map_err(|error| error.to_string())?;
        let is_done =
            |it: &&Deployment| serde_json::to_value(it).is_ok_and(|it: Value| is_complete(&it));
        if found.items.iter().filter(is_done).count() == count {
            return Ok(());
        }
        sleep(LOOKED_EVERY).await;
    }
}

/// What this process has of memory, in megabytes.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
