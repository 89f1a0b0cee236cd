//! Metrics: of work queues, controllers and requests under the names that client-go and
//! controller-runtime use, so that existing dashboards work, and of informers and reflectors.
//!
//! [`Metrics`] is a registry with the families of each part of the framework; the families
//! themselves are defined where they are fed. Who has no `Metrics` pays nothing for them.

mod requests;
mod text_format;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::controller::ControllerFamilies;
use crate::election::ElectionFamilies;
use crate::events::EventFamilies;
use crate::informer::{InformerStatus, Informers};
use crate::workqueue::metrics::QueueFamilies;

pub use requests::{CountRequests, RequestCounter};

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
    /// Those of the client.
    requests: RequestCounter,
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
        let requests = RequestCounter::register(&mut registry);
        let registry = Arc::new(Mutex::new(registry));
        Self { registry, workqueue, controllers, election, informers, events, requests }
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

    /// The `Content-Type` of what [`render_text`](Self::render_text) gives.
    pub const TEXT_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// All metrics now, in the older text format of Prometheus, which everybody reads.
    pub fn render_text(&self) -> String {
        text_format::of_open_metrics(&self.render())
    }

    /// All metrics now in the format that an `Accept` header prefers, and its `Content-Type`.
    pub fn negotiated(&self, accept: Option<&str>) -> (&'static str, String) {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => {
                (Self::CONTENT_TYPE, self.render())
            }
            _ => (Self::TEXT_CONTENT_TYPE, self.render_text()),
        }
    }

    /// A layer that counts the requests of a client; see [`CountRequests`].
    pub fn request_layer(&self) -> RequestCounter {
        self.requests.clone()
    }
}

impl Metrics {
    /// The same metrics; the caches that report here are those of another cluster.
    pub(crate) fn of_cluster(&self, cluster: &str) -> Self {
        Self { informers: self.informers.of_cluster(cluster), ..self.clone() }
    }

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
