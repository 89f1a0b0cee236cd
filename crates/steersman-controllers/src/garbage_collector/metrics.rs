//! What the garbage collector counts, under Kubernetes' name.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

/// How often it could not find out which kinds there are.
#[derive(Clone)]
pub(super) struct SyncMetrics {
    errors: Counter,
}

impl Families for SyncMetrics {
    fn register(registry: &mut Registry) -> Self {
        let errors = Counter::default();
        registry.register(
            "garbagecollector_controller_resources_sync_error",
            "Number of garbage collector resources sync errors",
            errors.clone(),
        );
        Self { errors }
    }
}

impl SyncMetrics {
    /// Some of the kinds, or all, could not be read.
    pub(super) fn failed(&self) {
        self.errors.inc();
    }
}
