//! What watches were told.

use std::sync::Arc;

use steersman_rules::resource::Resource;

use super::instrument::{Counter, Histogram};
use super::registry::{Family, Registry};

const SIZES: &[f64] = &[1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131_072.0];

/// The events of all watches.
pub(crate) struct Watches {
    events: Family<3, Counter>,
    sizes: Family<3, Histogram>,
    begun: Family<2, Counter>,
}

/// The events of the watches of one resource.
pub(crate) struct Watched {
    events: Arc<Counter>,
    sizes: Arc<Histogram>,
    begun: Arc<Counter>,
}

impl Watches {
    pub(super) fn registered(registry: &Registry) -> Self {
        Self {
            events: registry.counters(
                "apiserver_watch_events_total",
                "[ALPHA] Number of events sent in watch clients",
                ["group", "resource", "version"],
            ),
            sizes: registry.histograms(
                "apiserver_watch_events_sizes",
                "[ALPHA] Watch event size distribution in bytes",
                ["group", "resource", "version"],
                SIZES,
            ),
            begun: registry.counters(
                "apiserver_init_events_total",
                "[ALPHA] Counter of init events processed in watch cache broken by resource type.",
                ["group", "resource"],
            ),
        }
    }

    /// The events of the watches of a resource.
    pub(crate) fn of(&self, resource: &Resource) -> Watched {
        let place = [&*resource.group, &*resource.plural, &*resource.version];
        Watched {
            events: self.events.with(place),
            sizes: self.sizes.with(place),
            begun: self.begun.with([place[0], place[1]]),
        }
    }
}

impl Watched {
    /// An event of so many bytes is sent.
    #[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
    pub(crate) fn sends(&self, bytes: usize) {
        self.events.increment();
        self.sizes.observe(bytes as f64);
    }

    /// An object of the state that a watch begins with is read.
    pub(crate) fn begins_with(&self, objects: u64) {
        self.begun.add(objects);
    }
}
