//! What is counted, as Prometheus reads it, under Kubernetes' names.

use std::fmt::{Display, Write};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Fairness;
use super::configuration::{Configuration, LevelState};
use super::counts::{BUCKETS, Counts, Histogram};

const PREFIX: &str = "apiserver_flowcontrol_";

impl Fairness {
    /// Appends the metrics.
    pub(crate) fn write_metrics(&self, out: &mut String) {
        let configuration = self.configuration.read().unwrap_or_else(PoisonError::into_inner);
        write_levels(out, &configuration);
        write_requests(out, &configuration);
        write_refusals(out, &configuration);
        write_durations(out, &configuration);
    }
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
}

fn write_levels(out: &mut String, configuration: &Configuration) {
    type Value = fn(&LevelState) -> f64;
    let gauges: [(&str, &str, Value); 8] = [
        (
            "nominal_limit_seats",
            "Nominal number of execution seats configured for each priority level",
            |state| state.bounds.nominal.into(),
        ),
        (
            "lower_limit_seats",
            "Configured lower bound on number of execution seats available to each priority level",
            |state| state.bounds.lower.into(),
        ),
        (
            "upper_limit_seats",
            "Configured upper bound on number of execution seats available to each priority level",
            |state| state.bounds.upper.into(),
        ),
        (
            "current_limit_seats",
            "current derived number of execution seats available to each priority level",
            |state| state.level.limit().into(),
        ),
        (
            "demand_seats_high_watermark",
            "High watermark, over last adjustment period, of demand_seats",
            |state| state.demand.max.into(),
        ),
        (
            "demand_seats_average",
            "Time-weighted average, over last adjustment period, of demand_seats",
            |state| state.demand.average,
        ),
        (
            "demand_seats_stdev",
            "Time-weighted standard deviation, over last adjustment period, of demand_seats",
            |state| state.demand.deviation,
        ),
        ("demand_seats_smoothed", "Smoothed seat demands", |state| state.demand.smoothed),
    ];
    for (name, help, value) in gauges {
        family(out, name, "gauge", help);
        for (level, state) in &configuration.levels {
            let _ = writeln!(out, "{PREFIX}{name}{{priority_level=\"{level}\"}} {}", value(state));
        }
    }
}

fn write_requests(out: &mut String, configuration: &Configuration) {
    type Value = fn(&Counts) -> i64;
    let numbers: [(&str, &str, &str, Value); 5] = [
        (
            "dispatched_requests_total",
            "counter",
            "Number of requests executed by API Priority and Fairness subsystem",
            |counts| i64::try_from(counts.dispatched.load(Ordering::Relaxed)).unwrap_or(i64::MAX),
        ),
        (
            "current_inqueue_requests",
            "gauge",
            "Number of requests currently pending in queues of the API Priority and Fairness \
             subsystem",
            |counts| counts.waiting.load(Ordering::Relaxed),
        ),
        (
            "current_inqueue_seats",
            "gauge",
            "Number of seats currently pending in queues of the API Priority and Fairness \
             subsystem",
            |counts| counts.waiting_seats.load(Ordering::Relaxed),
        ),
        (
            "current_executing_requests",
            "gauge",
            "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage \
             in the API Priority and Fairness subsystem",
            |counts| counts.executing.load(Ordering::Relaxed),
        ),
        (
            "current_executing_seats",
            "gauge",
            "Concurrency (number of seats) occupied by the currently executing (initial stage for \
             a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
            |counts| counts.seats.load(Ordering::Relaxed),
        ),
    ];
    for (name, kind, help, value) in numbers {
        family(out, name, kind, help);
        for (labels, counts) in series(configuration) {
            let _ = writeln!(out, "{PREFIX}{name}{{{labels}}} {}", value(counts));
        }
    }
}

fn write_refusals(out: &mut String, configuration: &Configuration) {
    let name = "rejected_requests_total";
    let help = "Number of requests rejected by API Priority and Fairness subsystem";
    family(out, name, "counter", help);
    for (labels, counts) in series(configuration) {
        for (reason, number) in [
            ("concurrency-limit", &counts.concurrency_limit),
            ("queue-full", &counts.queue_full),
            ("time-out", &counts.time_out),
        ] {
            let number = number.load(Ordering::Relaxed);
            if number > 0 {
                let _ = writeln!(out, "{PREFIX}{name}{{{labels},reason=\"{reason}\"}} {number}");
            }
        }
    }
}

fn write_durations(out: &mut String, configuration: &Configuration) {
    let name = "request_wait_duration_seconds";
    family(out, name, "histogram", "Length of time a request spent waiting in its queue");
    for (labels, counts) in series(configuration) {
        write_histogram(out, name, &format!("execute=\"true\",{labels}"), &counts.served_after);
        write_histogram(out, name, &format!("execute=\"false\",{labels}"), &counts.refused_after);
    }
    let name = "request_execution_seconds";
    let help = "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request \
                execution in the API Priority and Fairness subsystem";
    family(out, name, "histogram", help);
    for (labels, counts) in series(configuration) {
        write_histogram(out, name, &labels.to_string(), &counts.executed_for);
    }
}

/// What was counted, with its labels, in their order.
fn series(configuration: &Configuration) -> impl Iterator<Item = (impl Display, &Counts)> {
    configuration.counts.iter().map(|((level, schema), counts)| {
        (format!("flow_schema=\"{schema}\",priority_level=\"{level}\""), &**counts)
    })
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
fn write_histogram(out: &mut String, name: &str, labels: &str, histogram: &Histogram) {
    let numbers = histogram.buckets.each_ref().map(|number| number.load(Ordering::Relaxed));
    let total: u64 = numbers.iter().sum();
    if total == 0 {
        return;
    }
    let mut count = 0;
    for (end, number) in BUCKETS.iter().zip(numbers) {
        count += number;
        let end = *end as f64 / 1e3;
        let _ = writeln!(out, "{PREFIX}{name}_bucket{{{labels},le=\"{end}\"}} {count}");
    }
    let sum = histogram.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
    let _ = writeln!(out, "{PREFIX}{name}_bucket{{{labels},le=\"+Inf\"}} {total}");
    let _ = writeln!(out, "{PREFIX}{name}_sum{{{labels}}} {sum}");
    let _ = writeln!(out, "{PREFIX}{name}_count{{{labels}}} {total}");
}
