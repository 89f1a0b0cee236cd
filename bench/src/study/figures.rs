//! What the study measures.

use std::collections::BTreeMap;

/// All steps with a controller of so many shards.
pub(super) struct Run {
    pub(super) shards: usize,
    pub(super) steps: Vec<Step>,
    pub(super) samples: Vec<Sample>,
}

/// One moment of a controller.
pub(super) struct Sample {
    pub(super) second: f64,
    /// How many keys wait in its queues.
    pub(super) depth: f64,
}

/// One step. Times of requests and reconciles are milliseconds, all others seconds.
#[derive(Default)]
pub(super) struct Step {
    /// How many AppServices there are at its end, and how many are new.
    pub(super) size: usize,
    pub(super) new: usize,
    /// Until they were created, and until all that followed was done.
    pub(super) created: f64,
    pub(super) seconds: f64,
    /// How many reconciles there were, how many of them failed, and of how many nobody heard how long
    /// they took.
    pub(super) reconciles: f64,
    pub(super) failures: f64,
    pub(super) unheard: f64,
    pub(super) reconcile_p50: f64,
    pub(super) reconcile_p99: f64,
    /// The most keys that waited.
    pub(super) depth_max: f64,
    /// From a client's change to the end of the reconcile that saw it.
    pub(super) change_p50: f64,
    pub(super) change_p99: f64,
    /// The changes of which that was not seen.
    pub(super) changes_lost: f64,
    /// Resident, in megabytes.
    pub(super) controller_mb: f64,
    pub(super) cluster_mb: f64,
    /// The time that processors computed while it grew.
    pub(super) controller_cpu: f64,
    pub(super) cluster_cpu: f64,
    /// When it began and ended.
    pub(super) begin: f64,
    pub(super) end: f64,
}

impl Step {
    /// How many new AppServices were done in a second.
    pub(super) fn rate(&self) -> f64 {
        self.new as f64 / self.seconds
    }

    /// What is reported, with units.
    pub(super) fn named(&self) -> Vec<(&'static str, f64, &'static str)> {
        vec![
            ("created", self.created, "s"),
            ("all reconciled", self.seconds, "s"),
            ("  for each second", self.rate(), "/s"),
            ("reconciles", self.reconciles, ""),
            ("  failed", self.failures, ""),
            ("  p50", self.reconcile_p50, "ms"),
            ("  p99", self.reconcile_p99, "ms"),
            ("most keys in the queue", self.depth_max, ""),
            ("changed to reconciled, p50", self.change_p50, "ms"),
            ("  p99", self.change_p99, "ms"),
            ("  not seen", self.changes_lost, ""),
            ("resident: controller", self.controller_mb, "MB"),
            ("  cluster", self.cluster_mb, "MB"),
            ("computed: controller", self.controller_cpu, "s"),
            ("  cluster", self.cluster_cpu, "s"),
        ]
    }
}

/// What the controller says of itself.
pub(super) struct Moment(pub(super) BTreeMap<String, f64>);

impl Moment {
    /// A figure; zero if it says none.
    pub(super) fn of(&self, metric: &str) -> f64 {
        self.0.get(metric).copied().unwrap_or_default()
    }
}
