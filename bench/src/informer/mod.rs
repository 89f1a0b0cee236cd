//! Informers and work queues side by side: Steersman, kube-runtime and client-go.
//!
//! Every system runs in a process of its own against a fresh server with the same Pods, and
//! reads the same bytes over HTTPS: [`subject`] says what is measured of an informer and
//! [`queue`] of a work queue, [`writer`] makes the updates that handlers hear of.
//! Here everything is started, in turns, and the medians are reported.

mod hearing;
pub(crate) mod kube_runtime;
mod metrics;
pub(crate) mod queue;
pub(crate) mod steersman;
pub(crate) mod subject;
mod systems;
pub(crate) mod writer;

use std::collections::BTreeMap;

use tokio::runtime::Runtime;

use crate::processes::Server;
use crate::processes::talk::Process;
use crate::processes::wire::{Line, Phase};
use crate::report::{Metric, Report, Row, median};
use metrics::METRICS;
use systems::System;

/// How much the benchmark `informer` measures.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Extent {
    /// informer: how many Pods there are; updates and queues shrink with them.
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    pods: usize,
    /// informer, controller, rollout: how often everything is measured; medians count.
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub(crate) rounds: usize,
}

impl Extent {
    fn updates(&self) -> usize {
        self.pods.min(20_000)
    }

    /// How many keys are added to a queue at once.
    fn queue_operations(&self) -> usize {
        self.pods * 40
    }

    /// How many keys are added to a queue with a delay.
    fn queue_delayed(&self) -> usize {
        self.pods * 20
    }
}

/// What was measured: metric and value, of the system it is listed under.
type Figures = Vec<(String, f64)>;

/// Runs the benchmark.
pub(crate) fn run(extent: &Extent, only: Option<&str>, report: &mut Report) -> Result<(), String> {
    let mut systems = systems::all()?;
    systems.retain(|system| only.is_none_or(|name| name == system.name));
    if systems.is_empty() {
        return Err("there is no such system to measure".to_owned());
    }
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut measured: BTreeMap<(&str, String), Vec<f64>> = BTreeMap::new();
    for round in 0..extent.rounds {
        // No system always comes first.
        let order = (0..systems.len()).map(|turn| &systems[(turn + round) % systems.len()]);
        for system in order {
            eprintln!("informer: round {} of {}: {}", round + 1, extent.rounds, system.name);
            let figures = runtime.block_on(measure(system, extent));
            let figures = figures.map_err(|error| format!("{}: {error}", system.name))?;
            for (metric, value) in figures {
                measured.entry((system.name, metric)).or_default().push(value);
            }
        }
    }
    let names: Vec<&str> = systems.iter().map(|system| system.name).collect();
    let value = |system: &&str, metric: &Metric| {
        measured.get(&(*system, metric.name.to_owned())).cloned().map(median)
    };
    let rows = METRICS.iter().map(|metric| Row {
        metric: metric.name,
        unit: metric.unit,
        lower_is_better: metric.lower_is_better,
        values: names.iter().map(|system| value(system, metric)).collect(),
        goals: metric.goals,
    });
    report.comparison(&names, &rows.collect::<Vec<_>>());
    Ok(())
}

/// Measures everything that a system has, once.
async fn measure(system: &System, extent: &Extent) -> Result<Figures, String> {
    let mut figures = Figures::new();
    if system.informer {
        figures.extend(informer(system, extent).await?);
    }
    if system.queue {
        let operations = extent.queue_operations();
        let delayed = extent.queue_delayed();
        let arguments = ["queue".to_owned(), operations.to_string(), delayed.to_string()];
        figures.extend(alone(system, &arguments).await?);
    }
    if system.map {
        figures.extend(alone(system, &["map".to_owned(), extent.pods.to_string()]).await?);
    }
    Ok(figures)
}

/// Lets a process measure by itself.
async fn alone(system: &System, arguments: &[String]) -> Result<Figures, String> {
    let mut process = Process::start(system.command(arguments))?;
    let mut figures = Figures::new();
    while let Some(line) = process.hear().await? {
        if let Line::Figure { metric, value } = line {
            figures.push((metric, value));
        }
    }
    Ok(figures)
}

/// Measures an informer against a server of its own.
async fn informer(system: &System, extent: &Extent) -> Result<Figures, String> {
    let mut server = Server::start("pods", extent.pods).await?;
    let path = server.kubeconfig().display().to_string();
    let arguments = ["informer".to_owned(), path, extent.updates().to_string()];
    let mut subject = Process::start(system.command(&arguments))?;
    let mut figures = Figures::new();
    let mut begun = 0;
    while let Some(line) = subject.hear().await? {
        match line {
            Line::Figure { metric, value } => figures.push((metric, value)),
            Line::Await(Phase::Patches) => {
                let paths = writer::pods(extent.pods).take(extent.updates());
                writer::patch(server.kubeconfig(), paths, writer::RATE).await?;
            }
            Line::Await(phase) => begun = server.burst(phase, extent.updates()).await?,
            Line::Heard { phase: Phase::Burst, at } => {
                let seconds = at.saturating_sub(begun) as f64 / 1e9;
                figures.push(("updates_per_second".to_owned(), extent.updates() as f64 / seconds));
            }
            Line::Heard { .. } | Line::Serving { .. } | Line::Begun { .. } | Line::Figures(_) => {}
        }
    }
    let pods = figures.iter().find(|(metric, _)| metric == "pods").map(|(_, value)| *value);
    if pods != Some(extent.pods as f64) {
        return Err(format!("{pods:?} Pods were synced, of {}", extent.pods));
    }
    Ok(figures)
}
