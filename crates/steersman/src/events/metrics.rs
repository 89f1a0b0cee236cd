//! The metrics of event recorders.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::Families;

/// Why an event was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Loss {
    /// Too many series wait to be written.
    Full,
    /// Too many events are about one object.
    RateLimited,
    /// The server does not want it: the namespace goes away, or we may not write events.
    Refused,
    /// Writing failed for minutes.
    Failed,
}

impl Loss {
    fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::RateLimited => "rate_limited",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

type Labels = [(&'static str, &'static str); 1];

/// The metrics of all recorders.
#[derive(Clone, Default)]
pub(crate) struct EventFamilies {
    dropped: Family<Labels, Counter>,
    written: Counter,
    series: Gauge,
}

impl Families for EventFamilies {
    fn register(registry: &mut Registry) -> Self {
        let families = Self::default();
        registry.register(
            "steersman_events_dropped",
            "Events that were not written, by reason",
            families.dropped.clone(),
        );
        registry.register(
            "steersman_events_written",
            "Writes of events: creations and updates of series",
            families.written.clone(),
        );
        registry.register(
            "steersman_event_series",
            "Series of events that are open or wait to be written",
            families.series.clone(),
        );
        families
    }
}

impl EventFamilies {
    pub(super) fn lost(&self, reason: Loss) {
        self.dropped.get_or_create(&[("reason", reason.as_str())]).inc();
    }

    pub(super) fn wrote(&self) {
        self.written.inc();
    }

    pub(super) fn open(&self, series: usize) {
        self.series.set(i64::try_from(series).unwrap_or(i64::MAX));
    }
}
