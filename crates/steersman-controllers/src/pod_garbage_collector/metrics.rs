//! What the Pod garbage collector counts, under Kubernetes' names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

use super::plan::Reason;

type Labels = [(&'static str, String); 2];

/// How many Pods are removed.
#[derive(Clone)]
pub(super) struct CollectorMetrics {
    deleted: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
}

impl Families for CollectorMetrics {
    /// Under these names with `_total`, which the encoder appends to counters.
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self { deleted: Family::default(), errors: Family::default() };
        let registry = registry.sub_registry_with_prefix("pod_gc_collector");
        let it = metrics.clone();
        let help = "Number of pods that are being forcefully deleted since the Pod GC Controller \
                    started";
        registry.register("force_delete_pods", help, it.deleted);
        let help = "Number of errors encountered when forcefully deleting the pods since the Pod \
                    GC Controller started";
        registry.register("force_delete_pod_errors", help, it.errors);
        metrics
    }
}

impl CollectorMetrics {
    /// It was tried to remove a Pod of this namespace.
    pub(super) fn removed(&self, namespace: &str, reason: Reason, well: bool) {
        let labels = [("namespace", namespace.to_owned()), ("reason", reason.name().to_owned())];
        if !well {
            self.errors.get_or_create(&labels).inc();
        }
        self.deleted.get_or_create(&labels).inc();
    }
}
