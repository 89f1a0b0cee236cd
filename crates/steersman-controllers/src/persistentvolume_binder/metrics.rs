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
    /// A claim got the default class, or did not, which counts as well.
    pub(super) fn class_assigned(&self, succeeded: bool) {
        self.assigned.inc();
        if !succeeded {
            self.failed.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use steersman::Metrics;

    use super::*;

    #[test]
    fn an_assignment_that_fails_is_an_assignment_and_a_failure() {
        let metrics: BinderMetrics = Metrics::default().families();
        metrics.class_assigned(true);
        metrics.class_assigned(false);
        assert_eq!((metrics.assigned.get(), metrics.failed.get()), (2, 1));
    }
}
