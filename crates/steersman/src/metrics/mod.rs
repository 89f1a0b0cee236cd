//! Metrics: of work queues, controllers and requests under the names that client-go and
//! controller-runtime use, so that existing dashboards work, and of informers and reflectors.
//!
//! [`Metrics`] is a registry that knows no part of the framework: each part defines its
//! [`Families`] where they are fed and registers them here when it first needs them. Whoever asks
//! later, such as a second controller, gets the same families. Who has no `Metrics` pays nothing
//! for them.

mod process;
mod requests;
mod text_format;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

pub(crate) use process::Process;
use requests::RequestCounter;

/// The metrics of one part of a program: one value for all of it, cheap to clone. The framework's
/// parts have theirs, and a controller can have some of its own.
pub trait Families: Clone + Send + Sync + 'static {
    /// Makes the families and registers them, which happens once for each [`Metrics`].
    fn register(registry: &mut Registry) -> Self;
}

/// All metrics of a program. Cheap to clone; all clones are the same metrics.
#[derive(Clone, Default)]
pub struct Metrics {
    shared: Arc<Mutex<Shared>>,
    /// The cluster of the caches that report here; the manager's own has no name.
    cluster: Arc<str>,
}

/// What all clones share.
#[derive(Default)]
struct Shared {
    registry: Registry,
    /// The [`Families`] that are registered, by their type.
    families: HashMap<TypeId, Box<dyn Any + Send>>,
}

impl Metrics {
    /// Adds metrics of one's own, or changes what is registered.
    pub fn with_registry<R>(&self, change: impl FnOnce(&mut Registry) -> R) -> R {
        change(&mut self.lock().registry)
    }

    /// The `Content-Type` of what [`render`](Self::render) gives.
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// All metrics now, in the OpenMetrics text format, which Prometheus reads.
    pub fn render(&self) -> String {
        let shared = self.lock();
        let mut text = String::new();
        if text::encode(&mut text, &shared.registry).is_err() {
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
    pub(crate) fn negotiated(&self, accept: Option<&str>) -> (&'static str, String) {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => {
                (Self::CONTENT_TYPE, self.render())
            }
            _ => (Self::TEXT_CONTENT_TYPE, self.render_text()),
        }
    }

    /// A layer that counts the requests of a client; see [`requests::CountRequests`]. It must be
    /// told which server they go [to](RequestCounter::to).
    pub fn request_layer(&self) -> RequestCounter {
        self.families()
    }

    /// The families of one part, which registers them if nobody asked for them before.
    pub fn families<F: Families>(&self) -> F {
        let mut shared = self.lock();
        let Shared { registry, families } = &mut *shared;
        if let Some(known) =
            families.get(&TypeId::of::<F>()).and_then(|any| any.downcast_ref::<F>())
        {
            return known.clone();
        }
        let new = F::register(registry);
        families.insert(TypeId::of::<F>(), Box::new(new.clone()));
        new
    }
}

impl Metrics {
    /// The same metrics; the caches that report here are those of another cluster.
    pub(crate) fn of_cluster(&self, cluster: &str) -> Self {
        Self { cluster: cluster.into(), ..self.clone() }
    }

    /// The cluster of the caches that report here; the manager's own has no name.
    pub(crate) fn cluster(&self) -> &Arc<str> {
        &self.cluster
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn a_part_registers_its_families_once_whoever_asks_for_them() {
        #[derive(Clone)]
        struct Sales(Counter<u64>);

        impl Families for Sales {
            fn register(registry: &mut Registry) -> Self {
                let sold = Counter::default();
                registry.register("sold", "Things sold", sold.clone());
                Self(sold)
            }
        }

        let metrics = Metrics::default();
        metrics.families::<Sales>().0.inc();
        metrics.of_cluster("elsewhere").families::<Sales>().0.inc();
        assert_eq!(metrics.render().matches("sold_total").count(), 1);
        assert!(metrics.render().contains("sold_total 2\n"));
    }
}
