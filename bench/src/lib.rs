//! Benchmarks, each a name on the command line. `cargo xtask bench` runs them all.
//!
//! Two programs: one has everything, the other only what a controller needs, as the memory of a
//! process depends on what its program contains.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its results")]

mod api;
mod child;
mod config_maps;
mod controller;
mod definitions;
mod go;
mod housekeeping;
mod informer;
mod kubernetes;
mod node;
mod policies;
mod processes;
mod program;
mod rollout;
mod scale;
mod scheduler;
mod start;
mod study;
mod up;

use std::process::ExitCode;

use clap::Parser;
use report::Report;
use steersman_bench_report as report;

/// Measures Steersman.
#[derive(Parser)]
struct Arguments {
    /// Only this benchmark.
    name: Option<String>,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
    /// Only the system of this name, where several are compared.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    #[command(flatten)]
    informer: informer::Extent,
    #[command(flatten)]
    api: api::Extent,
    #[command(flatten)]
    rollout: rollout::Extent,
    #[command(flatten)]
    housekeeping: housekeeping::Extent,
    #[command(flatten)]
    scheduler: scheduler::Extent,
    #[command(flatten)]
    scale: scale::Extent,
    /// scale: how many nodes and Pods there are, such as 1000:10000; study: how many AppServices.
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    sizes: Vec<String>,
    #[command(flatten)]
    study: study::Extent,
}

impl Arguments {
    fn only(&self) -> Option<&str> {
        self.system.as_deref()
    }
}

/// A benchmark: its name and what it does.
type Benchmark = (&'static str, fn(&Arguments, &mut Report) -> Result<(), String>);

/// Every benchmark there is.
const BENCHMARKS: &[Benchmark] = &[
    ("start", |_, report| start::run(report)),
    ("up", |_, report| up::run(report)),
    ("config-maps", |_, report| config_maps::run(report)),
    ("definitions", |_, report| definitions::run(report)),
    ("policies", |_, report| policies::run(report)),
    ("informer", |arguments, report| informer::run(&arguments.informer, arguments.only(), report)),
    ("controller", |arguments, report| {
        let objects = arguments.api.objects;
        let rounds = arguments.informer.rounds;
        controller::run(controller::Extent { objects, rounds }, arguments.only(), report)
    }),
    ("api", |arguments, report| api::run(&arguments.api, arguments.only(), report)),
    ("rollout", |arguments, report| {
        rollout::run(&arguments.rollout, arguments.informer.rounds, arguments.only(), report)
    }),
    ("scheduler", |arguments, report| {
        scheduler::run(&arguments.scheduler, arguments.rollout.upstream.as_ref(), report)
    }),
    ("scale", |arguments, report| scale::run(&arguments.scale, &arguments.sizes, report)),
    ("node", |_, report| node::run(report)),
    ("housekeeping", |arguments, report| housekeeping::run(&arguments.housekeeping, report)),
    ("study", |arguments, report| study::run(&arguments.study, &arguments.sizes, report)),
];

/// The benchmarks that run only if they are named: they take hours, and write more than figures.
const ONLY_BY_NAME: [&str; 1] = ["study"];

/// Runs what the command line names.
pub fn run() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("child") => return child::run(std::env::args().skip(1)),
        Some("bare") => return api::bare::run(words),
        _ => {}
    }
    let arguments = Arguments::parse();
    let chosen: Vec<&Benchmark> = BENCHMARKS
        .iter()
        .filter(|(name, _)| match arguments.name.as_deref() {
            Some(wanted) => wanted == *name,
            None => !ONLY_BY_NAME.contains(name),
        })
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
        eprintln!("error: there is no such benchmark; there are {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    for (name, run) in chosen {
        let mut report = Report::new(name, arguments.json);
        if let Err(error) = run(&arguments, &mut report) {
            eprintln!("error: {name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Measures the controller that the command line names; a process of the benchmark `controller`.
pub fn run_controller() -> ExitCode {
    controller::subject::run()
}
