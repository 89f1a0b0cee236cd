//! A run as text: what it came to, and how far it is.

use std::fmt::Write as _;

use crate::report::{Operation, Report};
use crate::run::Progress;

/// How many signs wide a bar of progress is.
const BAR: usize = 30;

impl Report {
    /// Phases and operations as text.
    pub fn table(&self) -> String {
        of_report(self)
    }
}

fn of_report(report: &Report) -> String {
    let mut text = format!("{} on {}\n\n", report.scenario.name, report.server);
    for phase in &report.phases {
        let _ = writeln!(text, "  {:<8} {:>9.2} s   {}", phase.name, phase.seconds, phase.outcome);
    }
    text.push('\n');
    text.push_str(&operations(&report.operations, Column::Count));
    let memory = report.gauges.iter().filter_map(|gauges| gauges.memory_bytes);
    if let Some(most) = memory.reduce(f64::max) {
        let _ = writeln!(text, "\n  API server: {:.0} MB at most", most / 1e6);
    }
    if report.unsent > 0 {
        let _ =
            writeln!(text, "\n  {} requests were due and not sent before the end", report.unsent);
    }
    if report.without_object > 0 {
        let _ = writeln!(text, "\n  {} requests found no object at rest", report.without_object);
    }
    for operation in report.operations.iter().filter(|operation| operation.errors > 0) {
        let why = operation.first_error.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "\n  {}: {} failed, the first with: {why}",
            operation.name, operation.errors
        );
    }
    text
}

impl Progress {
    /// The same while it goes on.
    pub fn table(&self) -> String {
        let Self { seconds, phase, done, wanted, gauges, .. } = self;
        let part = if *wanted == 0 { 0.0 } else { (*done as f64 / *wanted as f64).min(1.0) };
        let filled = (part * BAR as f64) as usize;
        let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR - filled));
        let mut text = format!("{seconds:>6.0} s  {phase:<8} [{bar}] {done}/{wanted}\n\n");
        text.push_str(&operations(&self.operations, Column::Rate));
        let _ = write!(text, "\n  {} objects, {} ready", gauges.objects, gauges.ready);
        if let Some(bytes) = gauges.memory_bytes {
            let _ = write!(text, "; API server {:.0} MB", bytes / 1e6);
        }
        text.push('\n');
        text
    }

    /// The same in one line.
    pub fn line(&self) -> String {
        let Self { seconds, phase, done, wanted, gauges, .. } = self;
        let errors: u64 = self.operations.iter().map(|operation| operation.errors).sum();
        let ready = format!("{} of {} objects ready", gauges.ready, gauges.objects);
        format!("{seconds:>6.0} s  {phase:<8} {done}/{wanted}  {ready}  {errors} errors")
    }
}

/// What the second column shows.
#[derive(Clone, Copy)]
enum Column {
    /// How many there were.
    Count,
    /// How many there were in the last second.
    Rate,
}

fn operations(all: &[Operation], column: Column) -> String {
    let head = match column {
        Column::Count => "count",
        Column::Rate => "a second",
    };
    let mut text = format!(
        "  {:<28} {head:>10} {:>8} {:>9} {:>9} {:>9} {:>9}\n",
        "", "errors", "p50 ms", "p90 ms", "p99 ms", "max ms"
    );
    for operation in all {
        let Operation { name, count, errors, p50, p90, p99, max, points, .. } = operation;
        let number = match column {
            Column::Count => *count as f64,
            Column::Rate => points.last().map_or(0.0, |point| point.rate),
        };
        let _ = writeln!(
            text,
            "  {name:<28} {number:>10.0} {errors:>8} {p50:>9.1} {p90:>9.1} {p99:>9.1} {max:>9.1}"
        );
    }
    text
}
