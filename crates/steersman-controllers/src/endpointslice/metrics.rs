//! What is counted of slices, under Kubernetes' names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::{Metrics, ObjectKey};

use super::hints::Traffic;
use super::plan::{MAX, Plan};

/// The bounds that Prometheus has where none are said.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

type Labelled<const N: usize, M> = Family<[(&'static str, &'static str); N], M>;

/// What is counted. Clones are the same.
#[derive(Clone)]
pub(super) struct Meters {
    added: Histogram,
    removed: Histogram,
    desired: Gauge,
    slices: Gauge,
    desired_slices: Gauge,
    // Kubernetes' names of these two do not end in `_total`, as those of counters would here.
    changes: Labelled<1, Gauge>,
    syncs: Labelled<1, Gauge>,
    changed: Labelled<2, Histogram>,
    distributions: Labelled<1, Gauge>,
    services: Arc<Mutex<HashMap<ObjectKey, Counted>>>,
}

/// What a Service adds to the sums.
#[derive(Clone, Copy, Default)]
struct Counted {
    endpoints: i64,
    slices: i64,
    desired_slices: i64,
    distribution: Option<&'static str>,
}

impl Meters {
    /// New ones, told among these metrics.
    pub(super) fn of(metrics: &Metrics) -> Self {
        let per_sync = || Histogram::new(exponential_buckets(2.0, 2.0, 15));
        let changed: fn() -> Histogram = || Histogram::new(BUCKETS);
        let meters = Self {
            added: per_sync(),
            removed: per_sync(),
            desired: Gauge::default(),
            slices: Gauge::default(),
            desired_slices: Gauge::default(),
            changes: Family::default(),
            syncs: Family::default(),
            changed: Family::new_with_constructor(changed),
            distributions: Family::default(),
            services: Arc::default(),
        };
        metrics.with_registry(|registry| meters.register(registry));
        meters
    }

    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("endpoint_slice_controller");
        let added = "Number of endpoints added on each Service sync";
        registry.register("endpoints_added_per_sync", added, self.added.clone());
        let removed = "Number of endpoints removed on each Service sync";
        registry.register("endpoints_removed_per_sync", removed, self.removed.clone());
        registry.register("endpoints_desired", "Number of endpoints desired", self.desired.clone());
        registry.register("num_endpoint_slices", "Number of EndpointSlices", self.slices.clone());
        let desired = "Number of EndpointSlices that would exist with perfect endpoint allocation";
        registry.register("desired_endpoint_slices", desired, self.desired_slices.clone());
        registry.register("changes", "Number of EndpointSlice changes", self.changes.clone());
        registry.register("syncs", "Number of EndpointSlice syncs", self.syncs.clone());
        let changed = "Number of EndpointSlices changed on each Service sync";
        registry.register("endpointslices_changed_per_sync", changed, self.changed.clone());
        let services = "Number of Services using some specific trafficDistribution";
        registry.register(
            "services_count_by_traffic_distribution",
            services,
            self.distributions.clone(),
        );
    }

    /// Counts what a Service needs.
    pub(super) fn planned(&self, service: &ObjectKey, plan: &Plan, traffic: Traffic) {
        let changes = &plan.changes;
        self.added.observe(float(changes.added));
        self.removed.observe(float(changes.removed));
        let topology = if traffic == Traffic::Automatic { "Auto" } else { "Disabled" };
        let distribution = traffic.distribution();
        let labels =
            [("topology", topology), ("traffic_distribution", distribution.unwrap_or_default())];
        self.changed.get_or_create(&labels).observe(float(changes.writes()));
        let desired_slices = plan.endpoints.iter().map(|count| count.div_ceil(MAX)).sum::<usize>();
        self.count(
            service,
            Some(Counted {
                endpoints: whole(plan.endpoints.iter().sum()),
                slices: whole(changes.keep.len() + changes.update.len() + changes.create.len()),
                desired_slices: whole(desired_slices.max(1)),
                distribution,
            }),
        );
    }

    /// Counts a Service no longer.
    pub(super) fn forget(&self, service: &ObjectKey) {
        self.count(service, None);
    }

    fn count(&self, service: &ObjectKey, now: Option<Counted>) {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match now {
            Some(now) => services.insert(service.clone(), now),
            None => services.remove(service),
        };
        let (before, now) = (before.unwrap_or_default(), now.unwrap_or_default());
        self.desired.inc_by(now.endpoints - before.endpoints);
        self.slices.inc_by(now.slices - before.slices);
        self.desired_slices.inc_by(now.desired_slices - before.desired_slices);
        for (distribution, change) in [(before.distribution, -1), (now.distribution, 1)] {
            if let Some(distribution) = distribution {
                let labels = [("traffic_distribution", distribution)];
                self.distributions.get_or_create(&labels).inc_by(change);
            }
        }
    }

    /// Counts a write: `create`, `update` or `delete`.
    pub(super) fn wrote(&self, operation: &'static str) {
        self.changes.get_or_create(&[("operation", operation)]).inc();
    }

    /// Counts that a Service was looked at.
    pub(super) fn synced(&self, well: bool) {
        let result = if well { "success" } else { "error" };
        self.syncs.get_or_create(&[("result", result)]).inc();
    }
}

fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
