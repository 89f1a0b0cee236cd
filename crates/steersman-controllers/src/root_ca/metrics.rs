//! What the root CA publisher counts, under Kubernetes' names.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::Result;
use steersman::metrics::Families;

type Code = [(&'static str, String); 1];

/// How often namespaces were looked at, and for how long, by what came of it.
#[derive(Clone)]
pub(super) struct PublisherMetrics {
    syncs: Family<Code, Counter>,
    durations: Family<Code, Histogram>,
}

impl Families for PublisherMetrics {
    /// Under these names, of which the encoder appends `_total` to that of the counter.
    fn register(registry: &mut Registry) -> Self {
        let duration: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let metrics =
            Self { syncs: Family::default(), durations: Family::new_with_constructor(duration) };
        let registry = registry.sub_registry_with_prefix("root_ca_cert_publisher");
        let it = metrics.clone();
        let help = "Number of namespace syncs happened in root ca cert publisher";
        registry.register("sync", help, it.syncs);
        registry.register("sync_duration_seconds", help, it.durations);
        metrics
    }
}

impl PublisherMetrics {
    /// A namespace was looked at for so long, with this result.
    pub(super) fn synced(&self, result: &Result<()>, took: Duration) {
        let code = match result {
            Ok(()) => 200,
            Err(error) => {
                let said = error.status().map(|status| status.code);
                said.filter(|code| *code != 0).unwrap_or(500)
            }
        };
        let labels = [("code", code.to_string())];
        self.syncs.get_or_create(&labels).inc();
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }
}
