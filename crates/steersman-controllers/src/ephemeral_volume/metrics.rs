//! What the ephemeral volume controller counts, under Kubernetes' names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

/// How often claims were made.
#[derive(Clone)]
pub(super) struct EphemeralMetrics {
    tries: Counter,
    failures: Counter,
}

impl Families for EphemeralMetrics {
    fn register(registry: &mut Registry) -> Self {
        let (tries, failures) = (Counter::default(), Counter::default());
        let help = "Number of PersistentVolumeClaim creation requests";
        registry.register("ephemeral_volume_controller_create", help, tries.clone());
        registry.register("ephemeral_volume_controller_create_failures", help, failures.clone());
        Self { tries, failures }
    }
}

impl EphemeralMetrics {
    /// A claim was to be made.
    pub(super) fn tried(&self, succeeded: bool) {
        self.tries.inc();
        if !succeeded {
            self.failures.inc();
        }
    }
}
