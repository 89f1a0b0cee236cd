//! What checks of health found. It is told at a path of its own, so that whoever measures how well the
//! server keeps its promises need not read everything else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::instrument::Counter;
use super::page::Page;
use super::registry::{Collect, Family, Registry};

/// The checks of one server.
pub(crate) struct Slis {
    registry: Registry,
    last: Arc<Last>,
    total: Family<3, Counter>,
}

/// Whether a check of an endpoint was passed when it was made last, by both names.
#[derive(Default)]
struct Last(Mutex<BTreeMap<(String, String), bool>>);

impl Collect for Last {
    fn collect(&self, page: &mut Page<'_>) {
        for ((check, endpoint), passed) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            page.sample("", &[("name", check), ("type", endpoint)], u64::from(*passed));
        }
    }
}

impl Default for Slis {
    fn default() -> Self {
        let registry = Registry::default();
        let last = Arc::new(Last::default());
        registry.add(
            "kubernetes_healthcheck",
            "gauge",
            "[STABLE] This metric records the result of a single healthcheck.",
            Arc::clone(&last) as Arc<dyn Collect>,
        );
        let total = registry.counters(
            "kubernetes_healthchecks_total",
            "[STABLE] This metric records the results of all healthcheck.",
            ["name", "status", "type"],
        );
        Self { registry, last, total }
    }
}

impl Slis {
    /// Counts a check of an endpoint such as `readyz`.
    pub(crate) fn checked(&self, endpoint: &str, check: &str, passed: bool) {
        let status = if passed { "success" } else { "error" };
        self.total.with([check, status, endpoint]).increment();
        let mut last = self.last.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert((check.to_owned(), endpoint.to_owned()), passed);
    }

    /// Appends all of it.
    pub(crate) fn write(&self, out: &mut String) {
        self.registry.write(out);
    }
}
