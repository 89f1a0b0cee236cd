//! What the node lifecycle controller counts, under Kubernetes' names.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

type Zone = [(&'static str, String); 1];

/// How many nodes there are, and how they are.
#[derive(Clone)]
pub(super) struct NodeMetrics {
    zone_health: Family<Zone, Gauge<f64, AtomicU64>>,
    zone_size: Family<Zone, Gauge>,
    unhealthy: Family<Zone, Gauge>,
    evictions: Family<Zone, Counter>,
    health_duration: Histogram,
}

impl Families for NodeMetrics {
    /// Under these names with `_total`, which the encoder appends to counters.
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            zone_health: Family::default(),
            zone_size: Family::default(),
            unhealthy: Family::default(),
            evictions: Family::default(),
            health_duration: Histogram::new(exponential_buckets(0.001, 4.0, 8)),
        };
        let registry = registry.sub_registry_with_prefix("node_collector");
        let it = metrics.clone();
        let help = "Gauge measuring percentage of healthy nodes per zone";
        registry.register("zone_health", help, it.zone_health);
        let help = "Gauge measuring number of registered Nodes per zones";
        registry.register("zone_size", help, it.zone_size);
        let help = "Gauge measuring number of not Ready Nodes per zones";
        registry.register("unhealthy_nodes_in_zone", help, it.unhealthy);
        let help = "Number of Node evictions that happened since current instance of \
                    NodeController started";
        registry.register("evictions", help, it.evictions);
        let help = "Duration in seconds for NodeController to update the health of a single node";
        registry.register("update_node_health_duration_seconds", help, it.health_duration);
        metrics
    }
}

impl NodeMetrics {
    /// A zone has so many nodes, of which so many are not ready.
    pub(super) fn zone(&self, zone: &str, size: usize, not_ready: usize) {
        let zone = [("zone", zone.to_owned())];
        let count = |nodes: usize| i64::try_from(nodes).unwrap_or(i64::MAX);
        let percent = match u32::try_from(size) {
            Ok(0) | Err(_) => 100.0,
            Ok(size) => {
                let ready = size - u32::try_from(not_ready).unwrap_or(size).min(size);
                f64::from(100 * ready) / f64::from(size)
            }
        };
        self.zone_health.get_or_create(&zone).set(percent);
        self.zone_size.get_or_create(&zone).set(count(size));
        self.unhealthy.get_or_create(&zone).set(count(not_ready));
        drop(self.evictions.get_or_create(&zone)); // told before there are any
    }

    /// The Pods of a node of this zone are sent away.
    pub(super) fn evicted(&self, zone: &str) {
        self.evictions.get_or_create(&[("zone", zone.to_owned())]).inc();
    }

    /// A look at a node took so long.
    pub(super) fn looked(&self, took: Duration) {
        self.health_duration.observe(took.as_secs_f64());
    }
}
