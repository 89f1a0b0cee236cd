//! What is counted of Endpoints that are mirrored, under Kubernetes' names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::ObjectKey;
use steersman::metrics::Families;

use super::plan::{Plan, Size};

/// What is counted. Clones are the same.
#[derive(Clone)]
pub(super) struct Meters {
    added: Histogram,
    updated: Histogram,
    removed: Histogram,
    skipped: Histogram,
    duration: Histogram,
    desired: Gauge,
    slices: Gauge,
    desired_slices: Gauge,
    // Kubernetes' name of these does not end in `_total`, as that of a counter would here.
    changes: Family<[(&'static str, &'static str); 1], Gauge>,
    sizes: Arc<Mutex<HashMap<ObjectKey, Size>>>,
}

impl Families for Meters {
    fn register(registry: &mut Registry) -> Self {
        let per_sync = || Histogram::new(exponential_buckets(2.0, 2.0, 15));
        let meters = Self {
            added: per_sync(),
            updated: per_sync(),
            removed: per_sync(),
            skipped: per_sync(),
            duration: Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            desired: Gauge::default(),
            slices: Gauge::default(),
            desired_slices: Gauge::default(),
            changes: Family::default(),
            sizes: Arc::default(),
        };
        let registry = registry.sub_registry_with_prefix("endpoint_slice_mirroring_controller");
        let it = meters.clone();
        let help = "Number of endpoints added on each Endpoints sync";
        registry.register("endpoints_added_per_sync", help, it.added);
        let help = "Number of endpoints updated on each Endpoints sync";
        registry.register("endpoints_updated_per_sync", help, it.updated);
        let help = "Number of endpoints removed on each Endpoints sync";
        registry.register("endpoints_removed_per_sync", help, it.removed);
        let help = "Number of addresses skipped on each Endpoints sync due to being invalid or \
                    exceeding MaxEndpointsPerSubset";
        registry.register("addresses_skipped_per_sync", help, it.skipped);
        let help = "Duration of syncEndpoints() in seconds";
        registry.register("endpoints_sync_duration", help, it.duration);
        registry.register("endpoints_desired", "Number of endpoints desired", it.desired);
        registry.register("num_endpoint_slices", "Number of EndpointSlices", it.slices);
        let help = "Number of EndpointSlices that would exist with perfect endpoint allocation";
        registry.register("desired_endpoint_slices", help, it.desired_slices);
        registry.register("changes", "Number of EndpointSlice changes", it.changes);
        meters
    }
}

impl Meters {
    /// Counts what is planned for Endpoints.
    pub(super) fn planned(&self, endpoints: &ObjectKey, plan: &Plan) {
        self.added.observe(float(plan.totals.added));
        self.updated.observe(float(plan.totals.updated));
        self.removed.observe(float(plan.totals.removed));
        self.skipped.observe(float(plan.skipped));
        self.resize(endpoints, Some(plan.size));
    }

    /// Counts Endpoints no longer, which are not mirrored.
    pub(super) fn forget(&self, endpoints: &ObjectKey) {
        self.resize(endpoints, None);
    }

    /// Counts a write: `create`, `update` or `delete`.
    pub(super) fn wrote(&self, operation: &'static str) {
        self.changes.get_or_create(&[("operation", operation)]).inc();
    }

    /// A look at Endpoints took so long.
    pub(super) fn looked(&self, took: Duration) {
        self.duration.observe(took.as_secs_f64());
    }

    fn resize(&self, endpoints: &ObjectKey, size: Option<Size>) {
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match size {
            Some(size) => sizes.insert(endpoints.clone(), size),
            None => sizes.remove(endpoints),
        };
        let (before, now) = (before.unwrap_or_default(), size.unwrap_or_default());
        for (gauge, before, now) in [
            (&self.desired, before.endpoints, now.endpoints),
            (&self.slices, before.slices, now.slices),
            (&self.desired_slices, before.desired_slices, now.desired_slices),
        ] {
            gauge.inc_by(whole(now) - whole(before));
        }
    }
}

fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
