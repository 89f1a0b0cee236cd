//! What single plug-ins do, and how long that takes.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::label::{EventName, Label};

type Three = [(&'static str, Label); 3];

/// What single plug-ins do.
#[derive(Clone)]
pub(crate) struct PluginMetrics {
    evaluations: Family<Three, Counter>,
    durations: Family<Three, Histogram>,
    hints: Family<Three, Histogram>,
}

/// How often a plug-in of a profile was asked, at the points at which that is counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evaluations {
    pub(crate) pre_filter: Counter,
    pub(crate) filter: Counter,
    pub(crate) pre_score: Counter,
    pub(crate) score: Counter,
}

impl PluginMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let microseconds: fn() -> Histogram =
            || Histogram::new(exponential_buckets(0.00001, 1.5, 20));
        let metrics = Self {
            evaluations: Family::default(),
            durations: Family::new_with_constructor(microseconds),
            hints: Family::new_with_constructor(microseconds),
        };
        let it = metrics.clone();
        registry.register(
            "scheduler_plugin_evaluation",
            "Number of attempts to schedule pods by each plugin and the extension point (available \
             only in PreFilter, Filter, PreScore, and Score)",
            it.evaluations,
        );
        registry.register(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point",
            it.durations,
        );
        registry.register(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Duration for running a queueing hint function of a plugin",
            it.hints,
        );
        metrics
    }

    /// Counts how often a plug-in of a profile is asked at a point.
    pub(crate) fn evaluations(
        &self,
        plugin: &'static str,
        point: &'static str,
        profile: &Arc<str>,
    ) -> Counter {
        let profile = Label::Text(Arc::clone(profile));
        let labels =
            [("plugin", plugin.into()), ("extension_point", point.into()), ("profile", profile)];
        self.evaluations.get_or_create_owned(&labels)
    }

    /// A plug-in has taken so long at a point.
    pub(crate) fn took(
        &self,
        plugin: &'static str,
        point: &'static str,
        status: &'static str,
        since: Instant,
    ) {
        let labels = [
            ("plugin", plugin.into()),
            ("extension_point", point.into()),
            ("status", status.into()),
        ];
        self.durations.get_or_create(&labels).observe(since.elapsed().as_secs_f64());
    }

    /// A plug-in has said whether an event helps a Pod.
    pub(crate) fn hinted(
        &self,
        plugin: &'static str,
        event: EventName,
        hint: &'static str,
        took: Duration,
    ) {
        let event = Label::Event(event);
        let labels = [("plugin", plugin.into()), ("event", event), ("hint", hint.into())];
        self.hints.get_or_create(&labels).observe(took.as_secs_f64());
    }
}
