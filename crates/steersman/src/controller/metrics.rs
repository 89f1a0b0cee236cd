//! The metrics of controllers, under controller-runtime's names; and two families of our
//! own, which say why reconciles happen and when they only chase themselves.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::record::Outcome;
use crate::cause::{Cause, Causes};
use crate::metrics::Families;

/// The bounds of controller-runtime's histogram, in seconds.
const BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5., 6., 7., 8., 9., 10., 15., 20., 25.,
    30., 40., 50., 60.,
];

type OfController = [(&'static str, String); 1];
type WithDetail = [(&'static str, String); 2];
type Counters = Family<OfController, Counter>;

/// The metrics of all controllers.
#[derive(Clone)]
pub(crate) struct ControllerFamilies {
    total: Family<WithDetail, Counter>,
    errors: Counters,
    terminal_errors: Counters,
    panics: Counters,
    timeouts: Counters,
    time: Family<OfController, Histogram>,
    max_concurrent: Family<OfController, Gauge>,
    active: Family<OfController, Gauge>,
    causes: Family<WithDetail, Counter>,
    hot_loops: Counters,
}

impl Families for ControllerFamilies {
    fn register(registry: &mut Registry) -> Self {
        let time: fn() -> Histogram = || Histogram::new(BUCKETS);
        let families = Self {
            total: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            time: Family::new_with_constructor(time),
            max_concurrent: Family::default(),
            active: Family::default(),
            causes: Family::default(),
            hot_loops: Family::default(),
        };
        families.register_counters(registry);
        families.register_workers(registry);
        families
    }
}

impl ControllerFamilies {
    /// Under these names with `_total`, which the encoder appends.
    fn register_counters(&self, registry: &mut Registry) {
        registry.register(
            "controller_runtime_reconcile",
            "Total number of reconciliations per controller",
            self.total.clone(),
        );
        registry.register(
            "steersman_reconcile_causes",
            "Why reconciliations happened, per controller",
            self.causes.clone(),
        );
        let counters = [
            ("reconcile_errors", "reconciliation errors", &self.errors),
            ("terminal_reconcile_errors", "terminal reconciliation errors", &self.terminal_errors),
            ("reconcile_panics", "reconciliation panics", &self.panics),
            ("reconcile_timeouts", "reconciliation timeouts", &self.timeouts),
        ];
        for (name, what, family) in counters {
            let help = format!("Total number of {what} per controller");
            registry.register(format!("controller_runtime_{name}"), help, family.clone());
        }
        registry.register(
            "steersman_hot_loops",
            "How often an object was found to be reconciled again and again because of what its \
             reconciles write",
            self.hot_loops.clone(),
        );
    }

    fn register_workers(&self, registry: &mut Registry) {
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            self.time.clone(),
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller",
            self.max_concurrent.clone(),
        );
        registry.register(
            "controller_runtime_active_workers",
            "Number of currently used workers per controller",
            self.active.clone(),
        );
    }

    /// The metrics of the controller of that name, all of which exist from now on.
    pub(crate) fn of(&self, controller: &str, concurrency: usize) -> ControllerMetrics {
        let name = [("controller", controller.to_owned())];
        let result = |result: &str| {
            let labels = [("controller", controller.to_owned()), ("result", result.to_owned())];
            self.total.get_or_create_owned(&labels)
        };
        let workers = i64::try_from(concurrency).unwrap_or(i64::MAX);
        self.max_concurrent.get_or_create(&name).set(workers);
        ControllerMetrics {
            controller: controller.to_owned(),
            success: result("success"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: self.errors.get_or_create_owned(&name),
            terminal_errors: self.terminal_errors.get_or_create_owned(&name),
            panics: self.panics.get_or_create_owned(&name),
            timeouts: self.timeouts.get_or_create_owned(&name),
            time: self.time.get_or_create_owned(&name),
            active: self.active.get_or_create_owned(&name),
            causes: CauseCounters { family: self.causes.clone(), known: Default::default() },
            hot_loops: self.hot_loops.get_or_create_owned(&name),
        }
    }
}

/// What one controller counts.
pub(crate) struct ControllerMetrics {
    controller: String,
    success: Counter,
    requeue_after: Counter,
    error: Counter,
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    timeouts: Counter,
    time: Histogram,
    active: Gauge,
    causes: CauseCounters,
    pub(crate) hot_loops: Counter,
}

impl ControllerMetrics {
    /// A reconcile begins; it is counted as active until what this gives is dropped.
    pub(crate) fn begin(&self, causes: &Causes) -> Active {
        self.causes.count(&self.controller, causes);
        self.active.inc();
        Active(self.active.clone())
    }

    /// A reconcile has ended.
    pub(crate) fn ended(&self, outcome: &Outcome, duration: Duration) {
        self.time.observe(duration.as_secs_f64());
        match outcome {
            Outcome::Settled => _ = self.success.inc(),
            Outcome::After(_) => _ = self.requeue_after.inc(),
            failure => {
                self.error.inc();
                self.errors.inc();
                let also = match failure {
                    Outcome::Terminal(_) => &self.terminal_errors,
                    Outcome::Panicked(_) => &self.panics,
                    Outcome::TimedOut => &self.timeouts,
                    _ => return,
                };
                also.inc();
            }
        }
    }
}

/// Counts causes. There are few words for them, each of which is looked up in the family once.
struct CauseCounters {
    family: Family<WithDetail, Counter>,
    known: [OnceLock<Counter>; Cause::LABELS.len()],
}

impl CauseCounters {
    fn count(&self, controller: &str, causes: &Causes) {
        for label in causes.iter().map(Cause::label) {
            let counter = || {
                let labels = [("controller", controller.to_owned()), ("cause", label.to_owned())];
                self.family.get_or_create_owned(&labels)
            };
            match Cause::LABELS.iter().position(|word| *word == label) {
                Some(place) => self.known[place].get_or_init(counter).inc(),
                None => counter().inc(), // a word that the list lacks
            };
        }
    }
}

/// A reconcile that runs.
pub(crate) struct Active(Gauge);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}
