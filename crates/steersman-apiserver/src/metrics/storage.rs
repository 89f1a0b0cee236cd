//! What is asked of the store, under the names that Kubernetes has for what it asks of etcd.
//!
//! Whatever the store is, dashboards know these names. What is read for a request is counted, and
//! every write; reads of what the server keeps for itself are not.

use std::time::Duration;

use steersman_rules::resource::Resource;

use super::instrument::{Counter, Histogram};
use super::registry::{Family, Registry};

const DURATIONS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// What is asked of the store.
pub(crate) struct Storage {
    durations: Family<3, Histogram>,
    errors: Family<3, Counter>,
    lists: Family<2, Counter>,
    fetched: Family<2, Counter>,
    evaluated: Family<2, Counter>,
    returned: Family<2, Counter>,
}

/// What a list had to do with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    /// How many objects were read.
    pub(crate) fetched: usize,
    /// How many of them were looked at.
    pub(crate) evaluated: usize,
    /// How many of those are told.
    pub(crate) returned: usize,
}

impl Storage {
    pub(super) fn registered(registry: &Registry) -> Self {
        let labels = ["group", "operation", "resource"];
        let kinds = ["group", "resource"];
        let durations = registry.histograms(
            "etcd_request_duration_seconds",
            "[ALPHA] Etcd request latency in seconds for each operation and object type.",
            labels,
            DURATIONS,
        );
        registry.totals(
            "etcd_requests_total",
            "[ALPHA] Etcd request counts for each operation and object type.",
            &durations,
        );
        Self {
            durations,
            errors: registry.counters(
                "etcd_request_errors_total",
                "[ALPHA] Etcd failed request counts for each operation and object type.",
                labels,
            ),
            lists: registry.counters(
                "apiserver_storage_list_total",
                "[ALPHA] Number of LIST requests served from storage",
                kinds,
            ),
            fetched: registry.counters(
                "apiserver_storage_list_fetched_objects_total",
                "[ALPHA] Number of objects read from storage in the course of serving a LIST request",
                kinds,
            ),
            evaluated: registry.counters(
                "apiserver_storage_list_evaluated_objects_total",
                "[ALPHA] Number of objects tested in the course of serving a LIST request from storage",
                kinds,
            ),
            returned: registry.counters(
                "apiserver_storage_list_returned_objects_total",
                "[ALPHA] Number of objects returned for a LIST request from storage",
                kinds,
            ),
        }
    }

    /// The store has answered.
    pub(crate) fn asked(&self, operation: &str, of: &Resource, failed: bool, took: Duration) {
        let labels = [&*of.group, operation, &*of.plural];
        self.durations.with(labels).took(took);
        if failed {
            self.errors.with(labels).increment();
        }
    }

    /// A list was read.
    pub(crate) fn listed(&self, of: &Resource, listed: Listed) {
        let labels = [&*of.group, &*of.plural];
        self.lists.with(labels).increment();
        for (family, number) in [
            (&self.fetched, listed.fetched),
            (&self.evaluated, listed.evaluated),
            (&self.returned, listed.returned),
        ] {
            family.with(labels).add(number as u64);
        }
    }
}
