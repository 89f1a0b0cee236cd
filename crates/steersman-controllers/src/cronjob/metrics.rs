//! What the CronJob controller counts, under Kubernetes' name.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

/// How late Jobs are started.
#[derive(Clone)]
pub(super) struct CronJobMetrics {
    skew: Histogram,
}

impl Families for CronJobMetrics {
    fn register(registry: &mut Registry) -> Self {
        let skew = Histogram::new(exponential_buckets(1.0, 2.0, 10));
        registry.register(
            "cronjob_controller_job_creation_skew_duration_seconds",
            "Time between when a cronjob is scheduled to be run, and when the corresponding job is \
             created",
            skew.clone(),
        );
        Self { skew }
    }
}

impl CronJobMetrics {
    /// A Job was created that was due at this time.
    pub(super) fn created(&self, job: &Job, due: Timestamp) {
        if let Some(created) = &job.metadata.creation_timestamp {
            self.skew.observe(created.0.duration_since(due).as_secs_f64());
        }
    }
}
