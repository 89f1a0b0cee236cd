//! What is done about claims for devices.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::label::Label;

type One = [(&'static str, Label); 1];
type Three = [(&'static str, Label); 3];

/// What is done about claims for devices.
#[derive(Clone)]
pub(crate) struct DeviceMetrics {
    created: Family<One, Counter>,
    allocations: Family<Three, Counter>,
    waits: Family<Three, Histogram>,
}

/// How it ended that a Pod waited until its devices are ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waited {
    /// `success`, `failure`, `timeout` or `error`.
    pub(crate) status: &'static str,
    pub(crate) took: Duration,
    /// The drivers of all of its devices, one for each device.
    pub(crate) drivers: Vec<Arc<str>>,
    /// Those of devices that had to be waited for.
    pub(crate) conditional: Vec<Arc<str>>,
}

impl DeviceMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let waits: fn() -> Histogram = || Histogram::new(exponential_buckets(0.1, 2., 14));
        let metrics = Self {
            created: Family::default(),
            allocations: Family::default(),
            waits: Family::new_with_constructor(waits),
        };
        let it = metrics.clone();
        registry.register(
            "scheduler_resourceclaim_creates",
            "Number of ResourceClaims creation requests within scheduler",
            it.created,
        );
        registry.register(
            "scheduler_dra_bindingconditions_allocations",
            "Number of allocations using devices with BindingConditions, counted per driver per \
             scheduling attempt",
            it.allocations,
        );
        registry.register(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time in seconds spent waiting for BindingConditions to be satisfied during PreBind",
            it.waits,
        );
        metrics
    }

    /// The scheduler has tried to create a claim.
    pub(crate) fn created(&self, succeeded: bool) {
        let status = if succeeded { "success" } else { "failure" };
        self.created.get_or_create(&[("status", status.into())]).inc();
    }

    /// A Pod of a profile has waited for its devices.
    pub(crate) fn waited(&self, profile: &Arc<str>, waited: &Waited) {
        let labels = |driver: &Arc<str>| {
            [
                ("profile", Label::Text(Arc::clone(profile))),
                ("driver", Label::Text(Arc::clone(driver))),
                ("status", waited.status.into()),
            ]
        };
        for driver in &waited.drivers {
            self.waits.get_or_create(&labels(driver)).observe(waited.took.as_secs_f64());
        }
        for driver in &waited.conditional {
            self.allocations.get_or_create(&labels(driver)).inc();
        }
    }
}
