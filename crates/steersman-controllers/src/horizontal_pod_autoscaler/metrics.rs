//! What the autoscaler counts, under Kubernetes' names.

use std::cmp::Ordering;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::ObjectKey;
use steersman::informer::Event;
use steersman::metrics::Families;

type Label = (&'static str, &'static str);
type Named = (&'static str, String);

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// What the autoscaler asks for makes no sense.
    Spec,
    Internal,
}

/// Whether a size is to become another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    None,
    Up,
    Down,
}

impl Way {
    pub(super) fn between(from: i32, to: i32) -> Self {
        match to.cmp(&from) {
            Ordering::Equal => Self::None,
            Ordering::Greater => Self::Up,
            Ordering::Less => Self::Down,
        }
    }
}

fn action(way: Way) -> Label {
    let name = match way {
        Way::None => "none",
        Way::Up => "scale_up",
        Way::Down => "scale_down",
    };
    ("action", name)
}

fn error(trouble: Trouble) -> Label {
    let name = match trouble {
        Trouble::None => "none",
        Trouble::Spec => "spec",
        Trouble::Internal => "internal",
    };
    ("error", name)
}

/// What is counted of all autoscalers.
#[derive(Clone)]
pub(super) struct AutoscalerMetrics {
    reconciliations: Family<[Label; 2], Counter>,
    reconciliation_duration: Family<[Label; 2], Histogram>,
    computations: Family<[Named; 3], Counter>,
    computation_duration: Family<[Named; 3], Histogram>,
    autoscalers: Gauge,
    desired: Family<[Named; 2], Gauge>,
}

impl Families for AutoscalerMetrics {
    /// Under these names with `_total`, which the encoder appends to counters.
    fn register(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let metrics = Self {
            reconciliations: Family::default(),
            reconciliation_duration: Family::new_with_constructor(histogram),
            computations: Family::default(),
            computation_duration: Family::new_with_constructor(histogram),
            autoscalers: Gauge::default(),
            desired: Family::default(),
        };
        let registry = registry.sub_registry_with_prefix("horizontal_pod_autoscaler_controller");
        let it = metrics.clone();
        let help = "Number of reconciliations of HPA controller";
        registry.register("reconciliations", help, it.reconciliations);
        let help = "The time(seconds) that the HPA controller takes to reconcile once";
        registry.register("reconciliation_duration_seconds", help, it.reconciliation_duration);
        registry.register("metric_computation", "Number of metric computations", it.computations);
        let help = "The time(seconds) that the HPA controller takes to calculate one metric";
        registry.register("metric_computation_duration_seconds", help, it.computation_duration);
        let help = "Current number of controlled HPA objects";
        registry.register("num_horizontal_pod_autoscalers", help, it.autoscalers);
        let help = "Current desired replica count for HPA objects";
        registry.register("desired_replicas", help, it.desired);
        metrics
    }
}

impl AutoscalerMetrics {
    /// Follows how many autoscalers there are.
    pub(super) fn observe(&self, event: &Event<HorizontalPodAutoscaler>) {
        match event {
            Event::Added { .. } => _ = self.autoscalers.inc(),
            Event::Deleted { .. } => _ = self.autoscalers.dec(),
            _ => {}
        }
    }

    /// An autoscaler was looked at, which took this time.
    pub(super) fn reconciled(&self, way: Way, trouble: Trouble, took: Duration) {
        let labels = [action(way), error(trouble)];
        self.reconciliations.get_or_create(&labels).inc();
        self.reconciliation_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A metric of this type was read and compared, which took this time.
    pub(super) fn computed(&self, type_: &str, way: Way, trouble: Trouble, took: Duration) {
        let owned = |(key, value): Label| (key, value.to_owned());
        let metric = ("metric_type", type_.to_owned());
        let labels = [owned(action(way)), owned(error(trouble)), metric];
        self.computations.get_or_create(&labels).inc();
        self.computation_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// The target of an autoscaler should have this size.
    pub(super) fn desires(&self, key: &ObjectKey, replicas: i32) {
        let namespace = key.namespace.as_deref().unwrap_or_default().to_owned();
        let labels = [("namespace", namespace), ("hpa_name", key.name.to_string())];
        self.desired.get_or_create(&labels).set(replicas.into());
    }
}
