//! What the ReplicaSet controller counts, under Kubernetes' names.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

use crate::pod;

/// How old the Pods are that go, beside the youngest: of ReplicaSets and ReplicationControllers.
#[derive(Clone)]
pub(crate) struct ReplicaMetrics {
    age_ratio: Histogram,
}

impl Families for ReplicaMetrics {
    fn register(registry: &mut Registry) -> Self {
        let age_ratio = Histogram::new(exponential_buckets(0.25, 2.0, 6));
        registry.register(
            "replicaset_controller_sorting_deletion_age_ratio",
            "The ratio of the ages of deleted pods to that of the youngest pod at the time, of \
             ready pods; should be below 2",
            age_ratio.clone(),
        );
        Self { age_ratio }
    }
}

impl ReplicaMetrics {
    /// Some of these Pods are going to be deleted. If all are, none was chosen.
    pub(super) fn chosen(&self, active: &[Arc<Pod>], deleted: &[Arc<Pod>], now: Timestamp) {
        if deleted.len() < active.len() {
            age_ratios(active, deleted, now).for_each(|ratio| self.age_ratio.observe(ratio));
        }
    }
}

/// How many times as old as the youngest Pod those are that are deleted, in whole numbers as
/// Kubernetes counts. Only Pods that are ready count.
fn age_ratios(
    active: &[Arc<Pod>],
    deleted: &[Arc<Pod>],
    now: Timestamp,
) -> impl Iterator<Item = f64> {
    let age = move |pod: &Arc<Pod>| {
        let created = pod.metadata.creation_timestamp.as_ref().filter(|_| pod::is_ready(pod))?;
        u32::try_from(now.duration_since(created.0).as_millis()).ok()
    };
    let youngest = active.iter().filter_map(age).min().filter(|age| *age > 0);
    let ages = deleted.iter().filter_map(age);
    ages.filter_map(move |age| Some(f64::from(age / youngest?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ages_are_told_in_whole_multiples_of_the_youngest_ready_pod() {
        let pod = |created: &str, ready: &str| -> Arc<Pod> {
            let pod = json!({
                "metadata": {"creationTimestamp": created},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            });
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        let now: Timestamp = "2030-01-01T01:00:00Z".parse().unwrap();
        let old = pod("2030-01-01T00:00:00Z", "True");
        let young = pod("2030-01-01T00:35:00Z", "True");
        let sick = pod("2030-01-01T00:59:00Z", "False");
        let active = [old.clone(), young.clone(), sick.clone()];
        let ratios = |deleted: &[Arc<Pod>]| age_ratios(&active, deleted, now).collect::<Vec<_>>();
        assert_eq!(ratios(&[old, young, sick]), [2.0, 1.0]);
        assert_eq!(ratios(&[]), [] as [f64; 0]);
    }
}
