//! Work beside the decisions: events that are taken in, Pods that are bound, others that go for them.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::label::{EventName, Label};

type One = [(&'static str, Label); 1];

/// Work beside the decisions.
#[derive(Clone)]
pub(crate) struct WorkMetrics {
    events: Family<One, Histogram>,
    running: Family<One, Gauge>,
    preemptions: Family<One, Counter>,
    preemption_duration: Family<One, Histogram>,
    after_flush: Counter,
    volumes: Family<One, Counter>,
}

/// A Pod is being bound, as long as this is there.
pub(crate) struct Bound(Gauge);

impl Drop for Bound {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl WorkMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            events: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.0001, 2., 12))
            }),
            running: Family::default(),
            preemptions: Family::default(),
            preemption_duration: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.01, 2., 20))
            }),
            after_flush: Counter::default(),
            volumes: Family::default(),
        };
        metrics.register_all(registry);
        metrics
    }

    fn register_all(&self, registry: &mut Registry) {
        let it = self.clone();
        registry.register(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds",
            it.events,
        );
        registry.register(
            "scheduler_goroutines",
            "Number of running goroutines split by the work they do such as binding",
            it.running,
        );
        registry.register(
            "scheduler_preemption_goroutines_execution",
            "Number of preemption goroutines executed",
            it.preemptions,
        );
        registry.register(
            "scheduler_preemption_goroutines_duration_seconds",
            "Duration in seconds for running goroutines for the preemption",
            it.preemption_duration,
        );
        registry.register(
            "scheduler_pod_scheduled_after_flush",
            "Number of pods that were successfully scheduled after being flushed from \
             unschedulablePods due to timeout. This metric helps detect potential queueing hint \
             misconfigurations or event handling issues",
            it.after_flush,
        );
        registry.register(
            "scheduler_volume_scheduling_stage_error",
            "Volume scheduling stage error count",
            it.volumes,
        );
    }

    /// An event was taken in since then.
    pub(crate) fn handled(&self, event: EventName, since: Instant) {
        let labels = [("event", Label::Event(event))];
        self.events.get_or_create(&labels).observe(since.elapsed().as_secs_f64());
    }

    /// A Pod is being bound from now on.
    pub(crate) fn binding(&self) -> Bound {
        let running = self.running.get_or_create_owned(&[("operation", "binding".into())]);
        running.inc();
        Bound(running)
    }

    /// It was tried to let others go for a Pod.
    pub(crate) fn preempted(&self, succeeded: bool, took: Duration) {
        let labels = [("result", if succeeded { "success" } else { "error" }.into())];
        self.preemptions.get_or_create(&labels).inc();
        self.preemption_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A Pod got a node when it was tried again only because it had waited for so long.
    pub(crate) fn bound_after_flush(&self) {
        self.after_flush.inc();
    }

    /// The volumes of a Pod could not be bound.
    pub(crate) fn volumes_failed(&self) {
        self.volumes.get_or_create(&[("operation", "bind".into())]).inc();
    }
}
