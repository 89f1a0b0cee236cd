//! The API itself: reads, writes and watches of ConfigMaps, over HTTPS and in process.
//!
//! One client ([`wire`]) asks every system the same things: our program, a server that does no
//! more than HTTPS and JSON ([`bare`], the ceiling), the same service in process for an
//! administrator, for a [user among many](user) and for that user where everybody may do
//! everything, and with `--rival` a kube-apiserver over
//! etcd ([`crate::kubernetes`]). [`lines`] says what is measured, [`fan_out`] how long a write takes to
//! reach its watchers.

pub(crate) mod bare;
mod fan_out;
mod lines;
mod measured;
mod requests;
mod target;
mod user;
mod wire;

use std::collections::BTreeMap;

use steersman_cluster::AuthorizationMode;
use tokio::runtime::{Builder, Runtime};

use crate::go;
use crate::kubernetes::Kubernetes;
use crate::program::Program;
use crate::report::{Report, Row};
use measured::{Figures, METRICS};
use target::Target;

/// How much the benchmark `api` measures.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Extent {
    /// api, controller: how many objects are written, read and listed, or reconciled.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub(crate) objects: usize,
    /// api: also build and measure kube-apiserver over etcd; needs Go, etcd and ten minutes.
    #[arg(long)]
    rival: bool,
}

/// A system, and how it is measured.
type System = (&'static str, fn(&Extent) -> Result<Figures, String>);

const SYSTEMS: [System; 6] = [
    ("steersman", over_https),
    ("in process", in_process),
    ("as a user", as_a_user),
    ("unauthorised", unauthorised),
    ("bare https", ceiling),
    (RIVAL, rival),
];
const RIVAL: &str = "kube-apiserver";

/// Runs the benchmark.
pub(crate) fn run(extent: &Extent, only: Option<&str>, report: &mut Report) -> Result<(), String> {
    let wanted = |name: &str| match only {
        Some(only) => only == name,
        None => name != RIVAL || extent.rival,
    };
    let mut systems = Vec::new();
    for (name, measure) in SYSTEMS.iter().filter(|(name, _)| wanted(name)) {
        eprintln!("api: {name}");
        systems.push((*name, measure(extent).map_err(|error| format!("{name}: {error}"))?));
    }
    if systems.is_empty() {
        return Err("there is no such system to measure".to_owned());
    }
    let names: Vec<&str> = systems.iter().map(|(name, _)| *name).collect();
    let rows: Vec<Row<'_>> = METRICS
        .iter()
        .map(|metric| Row {
            metric: metric.name,
            unit: metric.unit,
            lower_is_better: metric.lower_is_better,
            values: systems.iter().map(|(_, figures)| figures.get(metric.name).copied()).collect(),
            goals: metric.goals,
        })
        .collect();
    report.comparison(&names, &rows);
    Ok(())
}

fn runtime() -> Result<Runtime, String> {
    Builder::new_multi_thread().enable_all().build().map_err(|error| error.to_string())
}

/// The program, as its users have it, without nodes that would write leases meanwhile.
fn over_https(extent: &Extent) -> Result<Figures, String> {
    let program = Program::start(&["--memory", "--nodes", "0"])?;
    let runtime = runtime()?;
    runtime.block_on(async {
        program.ready().await.map_err(|error| error.to_string())?;
        let target = Target::https(program.kubeconfig()).await?;
        let mut figures = lines::all(&target, extent.objects).await?;
        figures.insert("resident, loaded", program.resident()?);
        fan_out::both(&target, &mut figures).await?;
        Ok(figures)
    })
}

/// The same service, called without a socket.
fn in_process(extent: &Extent) -> Result<Figures, String> {
    runtime()?.block_on(async {
        let cluster = steersman_cluster::Cluster::builder().nodes(0).start().await;
        let cluster = cluster.map_err(|error| error.to_string())?;
        let target = Target::service(cluster.api().clone());
        let mut figures = lines::all(&target, extent.objects).await?;
        fan_out::both(&target, &mut figures).await?;
        cluster.stop().await;
        Ok(figures)
    })
}

/// The same for a user who may edit one namespace, in a cluster of many users.
fn as_a_user(extent: &Extent) -> Result<Figures, String> {
    user_under(AuthorizationMode::NodeRbac, extent)
}

/// The same user of the same cluster, where nobody asks for permissions.
fn unauthorised(extent: &Extent) -> Result<Figures, String> {
    user_under(AuthorizationMode::AlwaysAllow, extent)
}

fn user_under(mode: AuthorizationMode, extent: &Extent) -> Result<Figures, String> {
    runtime()?.block_on(async {
        let builder = steersman_cluster::Cluster::builder().nodes(0).authorization(mode);
        let cluster = builder.start().await;
        let cluster = cluster.map_err(|error| error.to_string())?;
        user::bind_many(&cluster.client()).await.map_err(|error| error.to_string())?;
        let target = Target::service(cluster.api().acting_as(user::ordinary()));
        let figures = lines::in_namespace(&target, extent.objects).await?;
        cluster.stop().await;
        Ok(figures)
    })
}

/// What HTTPS and JSON cost without an API behind them.
fn ceiling(extent: &Extent) -> Result<Figures, String> {
    let bare = bare::Process::start()?;
    runtime()?.block_on(async {
        let target = Target::https(bare.kubeconfig()).await?;
        lines::ceiling(&target, extent.objects).await
    })
}

/// kube-apiserver over etcd, and nothing else of Kubernetes.
fn rival(extent: &Extent) -> Result<Figures, String> {
    eprintln!("api: building kube-apiserver (minutes, the first time)");
    let rival = Kubernetes::start(&go::build("kube-apiserver", "steersman-bench-kube-apiserver")?)?;
    runtime()?.block_on(async {
        rival.ready().await?;
        let target = Target::https(rival.kubeconfig()).await?;
        let mut figures = lines::all(&target, extent.objects).await?;
        figures.insert("resident, loaded", rival.resident()?);
        fan_out::both(&target, &mut figures).await?;
        Ok(figures)
    })
}

/// Nothing measured yet.
fn figures() -> Figures {
    BTreeMap::new()
}
