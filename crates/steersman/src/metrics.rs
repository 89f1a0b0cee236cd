//! Metrics: of work queues and controllers under the names that client-go and
//! controller-runtime use, so that existing dashboards work, and of informers and reflectors.
//!
//! [`Metrics`] is a registry with the families of each part of the framework; the families
//! themselves are defined where they are fed. Who has no `Metrics` pays nothing for them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::controller::ControllerFamilies;
use crate::election::ElectionFamilies;
use crate::events::EventFamilies;
use crate::informer::{InformerStatus, Informers};
use crate::workqueue::metrics::QueueFamilies;

/// All metrics of a program. Cheap to clone; all clones are the same metrics.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    /// Those of the work queues.
    pub(crate) workqueue: QueueFamilies,
    /// Those of the controllers.
    pub(crate) controllers: ControllerFamilies,
    /// Those of elections.
    pub(crate) election: ElectionFamilies,
    /// Those of the informers.
    pub(crate) informers: Informers,
    /// Those of the recorders of events.
    pub(crate) events: EventFamilies,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let workqueue = QueueFamilies::register(&mut registry);
        let controllers = ControllerFamilies::register(&mut registry);
        let (election, events) =
            (ElectionFamilies::register(&mut registry), EventFamilies::register(&mut registry));
        let informers = Informers::default();
        registry.register_collector(Box::new(informers.clone()));
        let registry = Arc::new(Mutex::new(registry));
        Self { registry, workqueue, controllers, election, informers, events }
    }
}

impl Metrics {
    /// Adds metrics of one's own, or changes what is registered.
    pub fn with_registry<R>(&self, change: impl FnOnce(&mut Registry) -> R) -> R {
        change(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The `Content-Type` of what [`render`](Self::render) gives.
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// All metrics now, in the OpenMetrics text format, which Prometheus reads.
    pub fn render(&self) -> String {
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        if text::encode(&mut text, &registry).is_err() {
            tracing::error!(
                "a collector of metrics failed; what it and those behind it say is missing"
            );
        }
        text
    }
}

impl Metrics {
    /// How every informer is doing that reports here.
    pub fn informers(&self) -> Vec<InformerStatus> {
        self.informers.statuses()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn a_program_adds_metrics_of_its_own() {
        let metrics = Metrics::default();
        let sold = Counter::<u64>::default();
        metrics.with_registry(|registry| registry.register("sold", "Things sold", sold.clone()));
        sold.inc_by(3);
        assert!(metrics.clone().render().contains("sold_total 3\n"));
    }
}
