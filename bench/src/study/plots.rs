//! The pictures of the study.

use steersman_load::plot::{Band, Line, Plot};

use super::figures::{Run, Step};

/// A picture: the name of its file, and what is in it.
pub(super) type Picture = (&'static str, String);

/// What a line shows of a step.
type Value = fn(&Step) -> f64;

const RATE: &[(&str, Value)] = &[("", Step::rate)];
const RECONCILE: &[(&str, Value)] =
    &[("p50", |step| step.reconcile_p50), ("p99", |step| step.reconcile_p99)];
const CHANGE: &[(&str, Value)] =
    &[("p50", |step| step.change_p50), ("p99", |step| step.change_p99)];
const MEMORY: &[(&str, Value)] =
    &[("controller", |step| step.controller_mb), ("cluster", |step| step.cluster_mb)];

/// All pictures.
pub(super) fn all(runs: &[Run]) -> Vec<Picture> {
    let rate = ("AppServices reconciled a second while they are created", "/s");
    let reconcile = ("Time of a reconcile while AppServices are created", "ms");
    let change = ("From a change to the end of its reconcile", "ms");
    let by_size = [
        by_size("rate.svg", rate, runs, RATE),
        by_size("reconcile.svg", reconcile, runs, RECONCILE),
        by_size("change.svg", change, runs, CHANGE),
        by_size("memory.svg", ("Resident memory", "MB"), runs, MEMORY),
    ];
    let queues = runs.iter().map(queue);
    by_size.into_iter().chain(queues).flatten().collect()
}

/// Lines over the number of AppServices.
fn by_size(
    file: &'static str,
    (title, unit): (&str, &str),
    runs: &[Run],
    values: &[(&str, Value)],
) -> Option<Picture> {
    let line = |run: &Run, (name, value): &(&str, Value)| Line {
        name: format!("{name} {}", shards(run.shards)).trim_start().to_owned(),
        dashed: false,
        points: run.steps.iter().map(|step| (step.size as f64 / 1000.0, value(step))).collect(),
    };
    let lines = runs.iter().flat_map(|run| values.iter().map(move |value| line(run, value)));
    let plot = Plot { title, unit, across: "k", lines: lines.collect(), bands: &[] };
    Some((file, plot.svg()?))
}

/// How full the queue was in the course of a run.
fn queue(run: &Run) -> Option<Picture> {
    let names: Vec<String> = run.steps.iter().map(|step| step.size.to_string()).collect();
    let bands = run.steps.iter().zip(&names);
    let bands: Vec<Band<'_>> =
        bands.map(|(step, name)| Band { name, begin: step.begin, end: step.end }).collect();
    let points = run.samples.iter().map(|sample| (sample.second, sample.depth)).collect();
    let lines = vec![Line { name: shards(run.shards), dashed: false, points }];
    let title = format!("Keys in the queue, {}", shards(run.shards));
    let plot = Plot { title: &title, unit: "", across: "s", lines, bands: &bands };
    let file = if run.shards == 1 { "queue-1.svg" } else { "queue-sharded.svg" };
    Some((file, plot.svg()?))
}

/// So many shards, in words.
pub(super) fn shards(count: usize) -> String {
    if count == 1 { "one shard".to_owned() } else { format!("{count} shards") }
}
