//! Controllers side by side: Steersman, kube-runtime and controller-runtime.
//!
//! Every system runs in a process of its own against a fresh server with the same Widgets,
//! over HTTPS. [`subject`] says what is measured, [`tally`] is the reconciler that all have in
//! common; here the runs are started, in turns, and the medians are reported.
//!
//! What the figures are:
//! - `reconciles_per_second`: every object asks to be reconciled again at once, so only the
//!   machinery bounds the rate; `reconcile_cpu_us` is what one such reconcile costs.
//! - `event_reconciles_per_second`: all objects change at once inside the server; until each
//!   has been reconciled. Reading and decoding the watch is part of it.
//! - `start_seconds`: from the start of the controller until all that was there is reconciled.
//! - `status_reconciles_per_second`: every object gets a status; until each write has come back
//!   as an event and was reconciled once more. The server shares the machine.
//! - `latency_…`: from sending a patch until the reconcile that sees it, at a steady rate.
//! - `idle_bytes`: the resident memory of a process with one controller and few objects.

mod kube_runtime;
mod metrics;
mod steersman;
pub(crate) mod subject;
mod tally;
mod widget;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ValueEnum;
use steersman_bench_server::widgets;
use tokio::process::Command;
use tokio::runtime::Runtime;

use crate::go;
use crate::informer::writer;
use crate::processes::Server;
use crate::processes::talk::Process;
use crate::processes::wire::{Line, Phase};
use crate::report::{Metric, Report, Row, median};
use metrics::METRICS;

/// How many patches begin in a second while latencies are measured.
const RATE: f64 = 400.0;
/// How many patches there are.
const UPDATES: usize = 2_000;
/// How many objects an idle controller has.
const FEW: usize = 10;
/// How many workers a busy controller has.
const WORKERS: usize = 16;

/// How much the benchmark `controller` measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// How many objects there are.
    pub(crate) objects: usize,
    /// How often everything is measured; medians count.
    pub(crate) rounds: usize,
}

/// What a process shall run.
#[derive(Clone, Debug, clap::Parser)]
struct Order {
    system: System,
    kubeconfig: PathBuf,
    workload: Workload,
    workers: usize,
    objects: usize,
    updates: usize,
}

/// The systems that are written in Rust.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum System {
    Steersman,
    KubeRuntime,
}

/// What the reconciler does, and what is measured of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Nothing, for few objects.
    Idle,
    /// It only looks at its object.
    Noop,
    /// It asks to be called again at once.
    Spin,
    /// It writes the status of its object.
    Status,
}

/// One process of a round.
struct Run {
    workload: Workload,
    workers: usize,
    objects: usize,
    updates: usize,
}

/// What was measured: metric and value.
type Figures = Vec<(String, f64)>;

/// The runs of a round.
fn runs(objects: usize) -> [Run; 6] {
    let run = |workload, workers, updates| Run { workload, workers, objects, updates };
    let updates = UPDATES.min(objects);
    [
        Run { objects: FEW.min(objects), ..run(Workload::Idle, 1, 0) },
        run(Workload::Noop, WORKERS, updates),
        run(Workload::Spin, WORKERS, 0),
        run(Workload::Spin, 1, 0),
        run(Workload::Status, WORKERS, updates),
        run(Workload::Status, 1, 0),
    ]
}

/// Runs the benchmark.
pub(crate) fn run(extent: Extent, only: Option<&str>, report: &mut Report) -> Result<(), String> {
    let mut systems = vec!["steersman", "kube-runtime", "controller-runtime"];
    systems.retain(|system| only.is_none_or(|name| name == *system));
    let go = go::build("go", go::RIVALS);
    if let Err(reason) = &go {
        eprintln!("controller: controller-runtime was not measured: {reason}");
        systems.retain(|system| *system != "controller-runtime");
    }
    if systems.is_empty() {
        return Err("there is no such system to measure".to_owned());
    }
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let go = go.ok();
    let mut measured: BTreeMap<(&str, String), Vec<f64>> = BTreeMap::new();
    for round in 0..extent.rounds {
        for run in runs(extent.objects) {
            // No system always comes first.
            for turn in 0..systems.len() {
                let system = systems[(turn + round) % systems.len()];
                let Run { workload, workers, .. } = run;
                eprintln!("controller: round {}: {system} {workload:?} {workers}", round + 1);
                let figures = runtime.block_on(measure(system, go.as_ref(), &run));
                let figures = figures.map_err(|error| format!("{system}: {error}"))?;
                for (metric, value) in figures {
                    measured.entry((system, run.metric(metric))).or_default().push(value);
                }
            }
        }
    }
    let value = |system: &&str, metric: &Metric| {
        measured.get(&(*system, metric.name.to_owned())).cloned().map(median)
    };
    let rows = METRICS.iter().map(|metric| Row {
        metric: metric.name,
        unit: metric.unit,
        lower_is_better: metric.lower_is_better,
        values: systems.iter().map(|system| value(system, metric)).collect(),
        goals: metric.goals,
    });
    report.comparison(&systems, &rows.collect::<Vec<_>>());
    Ok(())
}

/// Measures one run of a system.
async fn measure(system: &str, go: Option<&PathBuf>, run: &Run) -> Result<Figures, String> {
    let mut server = Server::start("widgets", run.objects).await?;
    let mut command = match go.filter(|_| system == "controller-runtime") {
        Some(go) => Command::new(go),
        None => Command::new(beside("steersman-bench-controller")?),
    };
    let who = if system == "controller-runtime" { "controller" } else { system };
    command.arg(who).args(run.arguments(&server));
    let mut subject = Process::start(command)?;
    let mut figures = Figures::new();
    let mut begun = 0;
    while let Some(line) = subject.hear().await? {
        match line {
            Line::Figure { metric, value } => figures.push((metric, value)),
            Line::Await(Phase::Patches) => {
                let paths = (0..run.updates).map(widgets::path);
                writer::patch(server.kubeconfig(), paths, RATE).await?;
            }
            Line::Await(phase) => begun = server.burst(phase, run.objects).await?,
            Line::Heard { phase: Phase::Burst, at } => {
                let seconds = at.saturating_sub(begun) as f64 / 1e9;
                let rate = run.objects as f64 / seconds;
                figures.push(("event_reconciles_per_second".to_owned(), rate));
            }
            Line::Heard { .. } | Line::Serving { .. } | Line::Begun { .. } | Line::Figures(_) => {}
        }
    }
    Ok(figures)
}

/// A program that was built with this one.
fn beside(name: &str) -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(here.with_file_name(name))
}

impl Run {
    fn arguments(&self, server: &Server) -> [String; 5] {
        let workload = self.workload.to_possible_value();
        [
            server.kubeconfig().display().to_string(),
            workload.map_or_else(String::new, |value| value.get_name().to_owned()),
            self.workers.to_string(),
            self.objects.to_string(),
            self.updates.to_string(),
        ]
    }

    /// The name of a metric in reports.
    fn metric(&self, metric: String) -> String {
        if self.workers == 1 && self.workload != Workload::Idle {
            return format!("{metric}_1_worker");
        }
        metric
    }
}
