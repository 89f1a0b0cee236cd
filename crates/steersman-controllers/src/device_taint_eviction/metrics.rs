//! What the device taint eviction controller counts, under Kubernetes' names.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

/// From 5 milliseconds to 4 minutes.
const BUCKETS: [f64; 12] =
    [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0];

/// How many Pods are deleted, and how late.
#[derive(Clone)]
pub(super) struct EvictionMetrics {
    deletions: Counter,
    latency: Histogram,
}

impl Families for EvictionMetrics {
    /// Under these names with `_total`, which the encoder appends to counters.
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self { deletions: Counter::default(), latency: Histogram::new(BUCKETS) };
        let registry = registry.sub_registry_with_prefix("device_taint_eviction_controller");
        let it = metrics.clone();
        let help = "Total number of Pods deleted by DeviceTaintEvictionController since its start";
        registry.register("pod_deletions", help, it.deletions);
        let help = "Latency, in seconds, between the time when a device taint effect has been \
                    activated and a Pod's deletion via DeviceTaintEvictionController";
        registry.register("pod_deletion_duration_seconds", help, it.latency);
        metrics
    }
}

impl EvictionMetrics {
    /// A Pod was deleted that was due then.
    pub(super) fn deleted(&self, due: Timestamp, now: Timestamp) {
        self.deletions.inc();
        self.latency.observe(now.duration_since(due).as_secs_f64());
    }
}
