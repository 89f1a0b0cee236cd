//! What the binder counts, under Kubernetes' names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

/// How often claims that named no class got the default one later.
#[derive(Clone)]
pub(super) struct BinderMetrics {
    assigned: Counter,
    failed: Counter,
}

impl Families for BinderMetrics {
    fn register(registry: &mut Registry) -> Self {
        let (assigned, failed) = (Counter::default(), Counter::default());
        registry.register(
            "retroactive_storageclass",
            "Total number of retroactive StorageClass assignments to persistent volume claim",
            assigned.clone(),
        );
        registry.register(
            "retroactive_storageclass_errors",
            "Total number of failed retroactive StorageClass assignments to persistent volume claim",
            failed.clone(),
        );
        Self { assigned, failed }
    }
}

impl BinderMetrics {
    /// A claim got the default class, or did not.
    pub(super) fn class_assigned(&self, succeeded: bool) {
        if succeeded {
            self.assigned.inc()
        } else {
            self.failed.inc()
        };
    }
}
