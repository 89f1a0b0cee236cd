//! The metrics of a webhook server, under controller-runtime's names.

use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

type Webhook = [(&'static str, String); 1];
type WebhookAndCode = [(&'static str, String); 2];

/// The metrics of one server. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub(super) struct WebhookMetrics {
    requests: Family<WebhookAndCode, Counter>,
    in_flight: Family<Webhook, Gauge>,
    latency: Family<Webhook, Histogram>,
    /// Panics of admission webhooks.
    pub(super) panics: Counter,
    /// Panics of conversion webhooks.
    pub(super) conversion_panics: Counter,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(10e-9, 10., 12));
        Self {
            requests: Family::default(),
            in_flight: Family::default(),
            latency: Family::new_with_constructor(histogram),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
        }
    }
}

impl WebhookMetrics {
    /// Makes a path known, so that its series begin at zero.
    pub(super) fn announce(&self, path: &str) {
        for code in ["200", "500"] {
            drop(self.requests.get_or_create(&with_code(path, code)));
        }
        drop(self.in_flight.get_or_create(&webhook(path)));
        drop(self.latency.get_or_create(&webhook(path)));
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "Total number of admission requests by HTTP status code";
        registry.register("controller_runtime_webhook_requests", help, self.requests.clone());
        let help = "Current number of admission requests being served";
        registry.register(
            "controller_runtime_webhook_requests_in_flight",
            help,
            self.in_flight.clone(),
        );
        let help = "Histogram of the latency of processing admission requests";
        registry.register("controller_runtime_webhook_latency_seconds", help, self.latency.clone());
        let help = "Total number of webhook panics";
        registry.register("controller_runtime_webhook_panics", help, self.panics.clone());
        let help = "Total number of conversion webhook panics";
        let panics = self.conversion_panics.clone();
        registry.register("controller_runtime_conversion_webhook_panics", help, panics);
    }

    /// Counts a request as being served until what this gives is dropped.
    pub(super) fn begin(&self, path: &str) -> Serving {
        let in_flight = self.in_flight.get_or_create_owned(&webhook(path));
        in_flight.inc();
        Serving { metrics: self.clone(), path: path.to_owned(), in_flight, began: Instant::now() }
    }
}

/// A request that is being served. The API server may hang up, which drops it.
pub(super) struct Serving {
    metrics: WebhookMetrics,
    path: String,
    in_flight: Gauge,
    began: Instant,
}

impl Serving {
    /// The request was answered.
    pub(super) fn answered(self, status: StatusCode) {
        let metrics = &self.metrics;
        let path = &self.path;
        metrics.requests.get_or_create(&with_code(path, status.as_str())).inc();
        let seconds = self.began.elapsed().as_secs_f64();
        metrics.latency.get_or_create(&webhook(path)).observe(seconds);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.in_flight.dec();
    }
}

fn webhook(path: &str) -> Webhook {
    [("webhook", path.to_owned())]
}

fn with_code(path: &str, code: &str) -> WebhookAndCode {
    [("webhook", path.to_owned()), ("code", code.to_owned())]
}
