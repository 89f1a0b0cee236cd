//! What the Job controller counts, under Kubernetes' names.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::informer::Event;
use steersman::metrics::Families;

use super::facts::{completions, has_finalizer, is_indexed};
use super::indexes::Indexes;
use super::plan::Verdict;
use crate::pod;

type Label = (&'static str, &'static str);
type Named = (&'static str, String);

const SUCCEEDED: &str = "succeeded";
const FAILED: &str = "failed";
/// What every Pod of a Job has.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// What a reconcile did about Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It did not come to it.
    Reconciling,
    /// There was nothing to do.
    Tracking,
    PodsCreated,
    PodsDeleted,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Reconciling => "reconciling",
            Self::Tracking => "tracking",
            Self::PodsCreated => "pods_created",
            Self::PodsDeleted => "pods_deleted",
        }
    }
}

/// What is counted of all Jobs.
#[derive(Clone)]
pub(super) struct JobMetrics {
    sync_duration: Family<[Label; 3], Histogram>,
    syncs: Family<[Label; 3], Counter>,
    finished: Family<[Named; 3], Counter>,
    pods_finished: Family<[Label; 2], Counter>,
    pods_created: Family<[Label; 2], Counter>,
    indexes_finished: Family<[Label; 2], Counter>,
    by_policy: Family<[Named; 1], Counter>,
    tracked_pods: Family<[Label; 1], Counter>,
    of_others: Family<[Named; 1], Counter>,
}

impl Families for JobMetrics {
    /// Under these names with `_total`, which the encoder appends to counters.
    fn register(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.004, 2.0, 15));
        let metrics = Self {
            sync_duration: Family::new_with_constructor(histogram),
            syncs: Family::default(),
            finished: Family::default(),
            pods_finished: Family::default(),
            pods_created: Family::default(),
            indexes_finished: Family::default(),
            by_policy: Family::default(),
            tracked_pods: Family::default(),
            of_others: Family::default(),
        };
        let registry = registry.sub_registry_with_prefix("job_controller");
        let it = metrics.clone();
        let help = "The time it took to sync a job";
        registry.register("job_sync_duration_seconds", help, it.sync_duration);
        registry.register("job_syncs", "The number of job syncs", it.syncs);
        registry.register("jobs_finished", "The number of finished jobs", it.finished);
        let help = "The number of finished Pods that are fully tracked";
        registry.register("job_pods_finished", help, it.pods_finished);
        let help = "The number of Pods created by the Job controller labelled with a reason for the \
                    Pod creation";
        registry.register("job_pods_creation", help, it.pods_created);
        let help = "The number of finished indexes";
        registry.register("job_finished_indexes", help, it.indexes_finished);
        let help = "The number of failed Pods handled by failure policy with respect to the failure \
                    policy action applied based on the matched rule";
        registry.register("pod_failures_handled_by_failure_policy", help, it.by_policy);
        let help = "The number of terminated pods (phase=Failed|Succeeded) that have the finalizer \
                    batch.kubernetes.io/job-tracking";
        registry.register("terminated_pods_tracking_finalizer", help, it.tracked_pods);
        let help = "The number of Jobs managed by an external controller";
        registry.register("jobs_by_external_controller", help, it.of_others);
        metrics
    }
}

impl JobMetrics {
    /// A reconcile has ended after this time.
    pub(super) fn synced(&self, spec: &JobSpec, well: bool, action: Action, took: Duration) {
        let result = if well { "success" } else { "error" };
        let labels = [mode(spec), ("result", result), ("action", action.name())];
        self.sync_duration.get_or_create(&labels).observe(took.as_secs_f64());
        self.syncs.get_or_create(&labels).inc();
    }

    /// A Job has ended.
    pub(super) fn ended(&self, spec: &JobSpec, end: &Verdict) {
        let result = if end.type_ == "Complete" { SUCCEEDED } else { FAILED };
        let (key, mode) = mode(spec);
        let labels =
            [(key, mode.to_owned()), ("result", result.to_owned()), ("reason", end.reason.clone())];
        self.finished.get_or_create(&labels).inc();
    }

    /// A status was written, with more Pods counted than in the one before.
    pub(super) fn counted(&self, spec: &JobSpec, before: &JobStatus, after: &JobStatus) {
        let more = |count: &dyn Fn(&JobStatus) -> u32| count(after).saturating_sub(count(before));
        let number = |count: Option<i32>| u32::try_from(count.unwrap_or(0)).unwrap_or(0);
        let succeeded = if is_indexed(spec) {
            let total = |text: &Option<String>| {
                let text = text.as_deref().unwrap_or_default();
                Indexes::parse(text, completions(spec)).total()
            };
            let succeeded = more(&|status| total(&status.completed_indexes));
            self.indexes(spec, SUCCEEDED, succeeded);
            self.indexes(spec, FAILED, more(&|status| total(&status.failed_indexes)));
            succeeded
        } else {
            more(&|status| number(status.succeeded))
        };
        let failed = more(&|status| number(status.failed));
        for (result, count) in [(SUCCEEDED, succeeded), (FAILED, failed)] {
            let labels = [mode(spec), ("result", result)];
            self.pods_finished.get_or_create(&labels).inc_by(count.into());
        }
    }

    fn indexes(&self, spec: &JobSpec, status: &'static str, count: u32) {
        let limit = if spec.backoff_limit_per_index.is_some() { "perIndex" } else { "global" };
        if count > 0 {
            let labels = [("status", status), ("backoffLimit", limit)];
            self.indexes_finished.get_or_create(&labels).inc_by(count.into());
        }
    }

    /// A Pod was created, or could not be: a new one, or instead of others that failed or are being
    /// deleted.
    pub(super) fn created(&self, spec: &JobSpec, failed: i32, terminating: i32, well: bool) {
        let only_failed = spec.pod_replacement_policy.as_deref() == Some("Failed");
        let reason = if only_failed && failed > 0 {
            "recreate_failed"
        } else if failed > 0 || terminating > 0 {
            "recreate_terminating_or_failed"
        } else {
            "new"
        };
        let labels = [("reason", reason), ("status", if well { SUCCEEDED } else { FAILED })];
        self.pods_created.get_or_create(&labels).inc();
    }

    /// Failed Pods were dealt with as rules say that have these actions.
    pub(super) fn handled(&self, actions: &[String]) {
        for action in actions {
            self.by_policy.get_or_create(&[("action", action.clone())]).inc();
        }
    }

    /// There is a Job that somebody else looks after.
    pub(super) fn of_another(&self, manager: &str) {
        self.of_others.get_or_create(&[("controller_name", manager.to_owned())]).inc();
    }

    /// Follows Pods that have ended and are not counted yet.
    pub(super) fn observe(&self, event: &Event<Pod>) {
        if event.object().label(JOB_NAME).is_none() {
            return; // so that not every Pod of the cluster need be decoded
        }
        let waits =
            |pod: Option<&Pod>| pod.is_some_and(|pod| has_finalizer(pod) && pod::is_terminal(pod));
        let now = event.object().object();
        let (was, is) = match event {
            Event::Added { .. } => (false, waits(now.as_deref())),
            Event::Updated { old, .. } => (waits(old.object().as_deref()), waits(now.as_deref())),
            Event::Deleted { .. } => (waits(now.as_deref()), false),
            _ => return,
        };
        if was != is {
            let labels = [("event", if is { "add" } else { "delete" })];
            self.tracked_pods.get_or_create(&labels).inc();
        }
    }
}

fn mode(spec: &JobSpec) -> Label {
    ("completion_mode", if is_indexed(spec) { "Indexed" } else { "NonIndexed" })
}
