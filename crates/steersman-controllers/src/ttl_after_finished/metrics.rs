//! What the TTL-after-finished controller counts, under Kubernetes' name.

use jiff::Timestamp;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

/// How late Jobs are deleted.
#[derive(Clone)]
pub(super) struct DeletionMetrics {
    duration: Histogram,
}

impl Families for DeletionMetrics {
    fn register(registry: &mut Registry) -> Self {
        let duration = Histogram::new(exponential_buckets(0.1, 2.0, 14));
        registry.register(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "The time it took to delete the job since it became eligible for deletion",
            duration.clone(),
        );
        Self { duration }
    }
}

impl DeletionMetrics {
    /// A Job was deleted that could have been since then.
    pub(super) fn deleted(&self, eligible: Timestamp, now: Timestamp) {
        self.duration.observe(now.duration_since(eligible).as_secs_f64());
    }
}
