//! Expressions over objects: how long an evaluation takes, and how long it takes to make one ready,
//! beside `cel` and `cel-core` and cel-go as Kubernetes uses it.
//!
//! Everyone is given the object as the server has it, a tree of JSON that was never seen before: who
//! wants it otherwise converts it, and that counts.

mod go;
mod measure;
mod object;
mod ours;
mod rivals;

use std::process::ExitCode;

use steersman_bench_report::{Report, Row};

use crate::measure::{System, Times, median};
use crate::object::{RULES, SIZES, object};

/// How often everyone has a turn.
const ROUNDS: usize = 5;

/// How much faster than cel-go an evaluation should be.
const GOAL: &[(&str, f64)] = &[("cel-go", 10.0)];

fn main() -> ExitCode {
    let json = std::env::args().any(|argument| argument == "--json");
    match run(&mut Report::new("cel", json)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(report: &mut Report) -> Result<(), String> {
    let mut systems: Vec<Box<dyn System>> =
        vec![Box::new(ours::Ours::new()?), Box::new(rivals::Cel), Box::new(rivals::CelCore::new())];
    match go::CelGo::start() {
        Ok(rival) => systems.push(Box::new(rival)),
        Err(why) => report.note(&format!("without cel-go: {why}")),
    }
    let names: Vec<&str> = systems.iter().map(|system| system.name()).collect();
    let (mut metrics, mut rows) = (Vec::new(), Vec::new());
    for (name, rule) in RULES {
        let mut ready = Vec::new();
        for items in SIZES {
            let object = object(items);
            let bytes = object.to_string().len();
            let times = measured(&mut systems, rule, &object)?;
            metrics.push(format!("{name}, {} KB", bytes.div_ceil(1000)));
            rows.push((times.iter().map(|times| Some(times.run)).collect(), GOAL));
            ready = times.iter().map(|times| Some(times.ready)).collect();
        }
        metrics.push(format!("{name}, made ready"));
        rows.push((ready, &[]));
    }
    let rows: Vec<Row<'_>> = metrics
        .iter()
        .zip(rows)
        .map(|(metric, (values, goals))| Row {
            metric,
            unit: "µs",
            lower_is_better: true,
            values,
            goals,
        })
        .collect();
    report.comparison(&names, &rows);
    Ok(())
}

/// Everyone in turns, and the median of each.
fn measured(
    systems: &mut [Box<dyn System>],
    rule: &str,
    object: &serde_json::Value,
) -> Result<Vec<Times>, String> {
    let mut all = vec![Vec::new(); systems.len()];
    for _ in 0..ROUNDS {
        for (system, times) in systems.iter_mut().zip(&mut all) {
            let time = system.measure(rule, object);
            times.push(time.map_err(|why| format!("{}: {rule}: {why}", system.name()))?);
        }
    }
    Ok(all.iter().map(|times| median(times)).collect())
}
