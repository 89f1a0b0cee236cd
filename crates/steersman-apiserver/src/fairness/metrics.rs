//! What is counted, under Kubernetes' names, told in the registry of all metrics.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

use super::Fairness;
use super::configuration::{Configuration, LevelState};
use super::counts::Counts;
use crate::metrics::{Collect, Instrument, Page, Registry};

impl Fairness {
    /// Tells the metrics in a registry.
    pub(crate) fn register(&self, registry: &Registry) {
        for (name, kind, help, write) in FAMILIES {
            let configuration = Arc::clone(&self.configuration);
            registry.add(name, kind, help, Arc::new(Told { configuration, write: *write }));
        }
    }
}

type Write = fn(&Configuration, &mut Page<'_>);

/// One family.
struct Told {
    configuration: Arc<RwLock<Configuration>>,
    write: Write,
}

impl Collect for Told {
    fn collect(&self, page: &mut Page<'_>) {
        let configuration = self.configuration.read().unwrap_or_else(PoisonError::into_inner);
        (self.write)(&configuration, page);
    }
}

const FAMILIES: &[(&str, &str, &str, Write)] = &[
    (
        "apiserver_flowcontrol_nominal_limit_seats",
        "gauge",
        "[BETA] Nominal number of execution seats configured for each priority level",
        |all, page| levels(all, page, |state| state.bounds.nominal.into()),
    ),
    (
        "apiserver_flowcontrol_lower_limit_seats",
        "gauge",
        "[ALPHA] Configured lower bound on number of execution seats available to each priority level",
        |all, page| levels(all, page, |state| state.bounds.lower.into()),
    ),
    (
        "apiserver_flowcontrol_upper_limit_seats",
        "gauge",
        "[ALPHA] Configured upper bound on number of execution seats available to each priority level",
        |all, page| levels(all, page, |state| state.bounds.upper.into()),
    ),
    (
        "apiserver_flowcontrol_current_limit_seats",
        "gauge",
        "[ALPHA] current derived number of execution seats available to each priority level",
        |all, page| levels(all, page, |state| state.level.limit().into()),
    ),
    (
        "apiserver_flowcontrol_demand_seats_high_watermark",
        "gauge",
        "[ALPHA] High watermark, over last adjustment period, of demand_seats",
        |all, page| levels(all, page, |state| state.demand.max.into()),
    ),
    (
        "apiserver_flowcontrol_demand_seats_average",
        "gauge",
        "[ALPHA] Time-weighted average, over last adjustment period, of demand_seats",
        |all, page| levels(all, page, |state| state.demand.average),
    ),
    (
        "apiserver_flowcontrol_demand_seats_stdev",
        "gauge",
        "[ALPHA] Time-weighted standard deviation, over last adjustment period, of demand_seats",
        |all, page| levels(all, page, |state| state.demand.deviation),
    ),
    (
        "apiserver_flowcontrol_demand_seats_smoothed",
        "gauge",
        "[ALPHA] Smoothed seat demands",
        |all, page| levels(all, page, |state| state.demand.smoothed),
    ),
    (
        "apiserver_flowcontrol_dispatched_requests_total",
        "counter",
        "[BETA] Number of requests executed by API Priority and Fairness subsystem",
        |all, page| {
            requests(all, page, |counts| {
                i64::try_from(counts.dispatched.get()).unwrap_or(i64::MAX)
            });
        },
    ),
    (
        "apiserver_flowcontrol_current_inqueue_requests",
        "gauge",
        "[BETA] Number of requests currently pending in queues of the API Priority and Fairness subsystem",
        |all, page| requests(all, page, |counts| counts.waiting.load(Ordering::Relaxed)),
    ),
    (
        "apiserver_flowcontrol_current_inqueue_seats",
        "gauge",
        "[ALPHA] Number of seats currently pending in queues of the API Priority and Fairness subsystem",
        |all, page| requests(all, page, |counts| counts.waiting_seats.load(Ordering::Relaxed)),
    ),
    (
        "apiserver_flowcontrol_current_executing_requests",
        "gauge",
        "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
        |all, page| requests(all, page, |counts| counts.executing.get()),
    ),
    (
        "apiserver_flowcontrol_current_executing_seats",
        "gauge",
        "[BETA] Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
        |all, page| requests(all, page, |counts| counts.seats.load(Ordering::Relaxed)),
    ),
    (
        "apiserver_flowcontrol_rejected_requests_total",
        "counter",
        "[BETA] Number of requests rejected by API Priority and Fairness subsystem",
        refusals,
    ),
    (
        "apiserver_flowcontrol_request_wait_duration_seconds",
        "histogram",
        "[BETA] Length of time a request spent waiting in its queue",
        waits,
    ),
    (
        "apiserver_flowcontrol_request_execution_seconds",
        "histogram",
        "[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem",
        |all, page| {
            for ([schema, level], counts) in series(all) {
                if counts.executed_for.count() > 0 {
                    counts.executed_for.write(page, &[schema, level]);
                }
            }
        },
    ),
];

fn levels(all: &Configuration, page: &mut Page<'_>, value: fn(&LevelState) -> f64) {
    for (level, state) in &all.levels {
        page.sample("", &[("priority_level", level)], value(state));
    }
}

fn requests(all: &Configuration, page: &mut Page<'_>, value: fn(&Counts) -> i64) {
    for (labels, counts) in series(all) {
        page.sample("", &labels, value(counts));
    }
}

fn refusals(all: &Configuration, page: &mut Page<'_>) {
    for ([schema, level], counts) in series(all) {
        for (reason, number) in [
            ("concurrency-limit", &counts.concurrency_limit),
            ("queue-full", &counts.queue_full),
            ("time-out", &counts.time_out),
        ] {
            let number = number.load(Ordering::Relaxed);
            if number > 0 {
                page.sample("", &[schema, level, ("reason", reason)], number);
            }
        }
    }
}

fn waits(all: &Configuration, page: &mut Page<'_>) {
    for ([schema, level], counts) in series(all) {
        for (executed, histogram) in
            [("true", &counts.served_after), ("false", &counts.refused_after)]
        {
            if histogram.count() > 0 {
                histogram.write(page, &[("execute", executed), schema, level]);
            }
        }
    }
}

/// What was counted, with its labels, in their order.
fn series(all: &Configuration) -> impl Iterator<Item = ([(&'static str, &str); 2], &Counts)> {
    all.counts.iter().map(|((level, schema), counts)| {
        ([("flow_schema", schema.as_str()), ("priority_level", level.as_str())], &**counts)
    })
}
