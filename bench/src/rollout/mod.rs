//! Whole workloads, from what a user asks for until it has come about: our program beside
//! Kubernetes' own control plane, kube-apiserver, kube-controller-manager and kube-scheduler over
//! etcd, where somebody gives a directory with those programs.
//!
//! One [user] asks both for the same over HTTPS, in turns, each time on a new cluster, and
//! hears by a watch that it is there; [`lines`] says what is measured. Nodes are simulated: ours are
//! part of our program, and of its memory; those of the rival exist as objects that the
//! [benchmark](kubelet) writes. Both keep what they are told on disk.

mod kubelet;
mod lines;
mod metrics;
mod upstream;
pub(crate) mod user;
mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::runtime::Runtime;

use crate::program::Program;
use crate::report::{Metric, Report, Row, median};
use lines::Figures;
use metrics::{MEMORY, MEMORY_MAX, METRICS, RIVAL};
use upstream::Upstream;
use user::User;

const OURS: &str = "steersman";
/// Enough for the 1,250 Pods that a rolling update of 1,000 may have, with 110 on each.
const NODES: usize = 15;

/// How much the benchmark `rollout` measures.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Extent {
    /// rollout, scheduler: a directory with kube-apiserver, kube-controller-manager and
    /// kube-scheduler, to be measured as well; needs etcd, and ten minutes a round.
    #[arg(long, value_name = "DIR")]
    pub(crate) upstream: Option<PathBuf>,
}

/// Runs the benchmark, so many rounds.
pub(crate) fn run(
    extent: &Extent,
    rounds: usize,
    only: Option<&str>,
    report: &mut Report,
) -> Result<(), String> {
    let mut systems = vec![OURS];
    systems.extend(extent.upstream.iter().map(|_| RIVAL));
    systems.retain(|system| only.is_none_or(|name| name == *system));
    if systems.is_empty() {
        return Err("there is no such system to measure".to_owned());
    }
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut measured: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        // No system always comes first.
        for turn in 0..systems.len() {
            let system = systems[(turn + round) % systems.len()];
            eprintln!("rollout: round {}: {system}", round + 1);
            let figures = match extent.upstream.as_deref().filter(|_| system == RIVAL) {
                Some(directory) => runtime.block_on(theirs(directory)),
                None => runtime.block_on(ours()),
            };
            for (metric, value) in figures.map_err(|error| format!("{system}: {error}"))? {
                measured.entry((system, metric)).or_default().push(value);
            }
        }
    }
    tell(&systems, &measured, report);
    Ok(())
}

async fn ours() -> Result<Figures, String> {
    let nodes = NODES.to_string();
    let program = Program::start(&["--nodes", &nodes, "--pod-termination", "0"])?;
    program.ready().await.map_err(|error| error.to_string())?;
    let user = User::of(program.kubeconfig()).await?;
    let mut figures = lines::all(&user, || program.resident()).await?;
    figures.push(("resident, peak", program.peak()?));
    figures.push(("resident, in the end", program.resident()?));
    Ok(figures)
}

async fn theirs(directory: &Path) -> Result<Figures, String> {
    let upstream = Upstream::start(directory, NODES).await?;
    let kubernetes = &upstream.kubernetes;
    let user = User::of(kubernetes.kubeconfig()).await?;
    let figures = lines::all(&user, || kubernetes.resident()).await;
    let mut figures = figures.map_err(|error| format!("{error}; {}", kubernetes.last_words()))?;
    figures.push(("resident, peak", kubernetes.peak()?));
    figures.push(("resident, in the end", kubernetes.resident()?));
    Ok(figures)
}

fn tell(systems: &[&str], measured: &BTreeMap<(&str, &str), Vec<f64>>, report: &mut Report) {
    let value =
        |system: &str, metric: &Metric| measured.get(&(system, metric.name)).cloned().map(median);
    let rows = METRICS.iter().map(|metric| Row {
        metric: metric.name,
        unit: metric.unit,
        lower_is_better: metric.lower_is_better,
        values: systems.iter().map(|system| value(system, metric)).collect(),
        goals: metric.goals,
    });
    report.comparison(systems, &rows.collect::<Vec<_>>());
    if let Some(memory) = measured.get(&(OURS, MEMORY)).cloned().map(median) {
        let verdict = if memory < MEMORY_MAX { "met" } else { "MISSED" };
        report.note(&format!("{MEMORY}: goal under {MEMORY_MAX:.0} MB: {verdict}"));
    }
    if systems.contains(&RIVAL) {
        report.note("its clients ask at the rates they have by default: kube-controller-manager 20/s, kube-scheduler 50/s");
    }
}
