//! What is measured of which system, and how it is reported.

use std::collections::BTreeMap;

use steersman_bench_report::{Metric, Report, Row, higher, lower, median};

/// A store under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum System {
    /// Ours on disk.
    Disk,
    /// Ours on disk, which does not wait for the disk.
    Unsynced,
    /// Ours in memory.
    Memory,
    /// Ours on etcd.
    OnEtcd,
    /// etcd.
    Etcd,
    /// etcd, whose reads may be stale.
    EtcdStale,
}

impl System {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Disk => "steersman",
            Self::Unsynced => "sync off",
            Self::Memory => "in memory",
            Self::OnEtcd => "ours on etcd",
            Self::Etcd => "etcd",
            Self::EtcdStale => "etcd, stale",
        }
    }
}

/// Which systems stand side by side; the first is compared with the rest.
const TABLES: &[&[System]] = &[
    &[System::Disk, System::Etcd, System::EtcdStale],
    &[System::OnEtcd, System::Etcd, System::EtcdStale],
    &[System::Disk, System::Unsynced, System::Memory],
];
const ALL: &[System] = &[
    System::Disk,
    System::Unsynced,
    System::Memory,
    System::OnEtcd,
    System::Etcd,
    System::EtcdStale,
];

const READS: &[(&str, f64)] = &[("etcd", 20.0), ("etcd, stale", 20.0)];

/// Every metric, in the order of the report.
pub(crate) const METRICS: &[Metric] = &[
    higher("put, 1 writer", "/s", &[]),
    lower("put, 1 writer, p50", "ms", &[]),
    lower("put, 1 writer, p99", "ms", &[]),
    higher("put, 64 writers", "/s", &[("etcd", 5.0)]),
    lower("put, 64 writers, p50", "ms", &[]),
    lower("put, 64 writers, p99", "ms", &[]),
    higher("get, 1 reader", "/s", READS),
    higher("get, 64 readers", "/s", READS),
    lower("range of all keys", "ms", READS),
    higher("range of all keys, entries", "/s", &[]),
    lower("range in pages of 500", "ms", READS),
    higher("range in pages, entries", "/s", &[]),
    lower("write to 1 watcher, p50", "ms", &[]),
    lower("write to 1 watcher, p99", "ms", &[]),
    lower("write to last of 100, p50", "ms", &[]),
    lower("write to last of 100, p99", "ms", &[]),
    lower("write to last of 1000, p50", "ms", &[]),
    lower("write to last of 1000, p99", "ms", &[]),
    higher("fill, 256 writers", "/s", &[]),
    lower("open after the fill", "s", &[]),
    lower("open after compaction", "s", &[]),
    lower("on disk after the fill", "MB", &[]),
    lower("on disk after compaction", "MB", &[]),
    lower("on disk, defragmented", "MB", &[]),
    lower("resident, holding Pods", "MB", &[]),
    lower("resident, opened again", "MB", &[]),
];

/// What our store on disk must stay below, whatever others do.
const GOALS: &[(&str, f64)] = &[("open after the fill", 2.0), ("resident, holding Pods", 1500.0)];

/// Figures, several of each where it was measured in several rounds.
#[derive(Default)]
pub(crate) struct Measured(BTreeMap<(System, &'static str), Vec<f64>>);

impl Measured {
    pub(crate) fn note(&mut self, system: System, metric: &'static str, value: f64) {
        debug_assert!(METRICS.iter().any(|known| known.name == metric), "{metric}");
        self.0.entry((system, metric)).or_default().push(value);
    }

    /// The median of what was noted.
    pub(crate) fn value(&self, system: System, metric: &'static str) -> Option<f64> {
        self.0.get(&(system, metric)).map(|values| median(values.clone()))
    }

    pub(crate) fn print(&self, report: &mut Report, json: bool) {
        // Each figure once for programs; for people, what belongs together, and everything of the
        // first table.
        let tables = if json { &[ALL] } else { TABLES };
        for (number, systems) in tables.iter().enumerate() {
            let mut rows = self.rows(systems);
            rows.retain(|row| number == 0 || is_compared(row));
            let names: Vec<&str> = systems.iter().map(|system| system.name()).collect();
            if !rows.is_empty() {
                report.comparison(&names, &rows);
                report.note("");
            }
        }
        for (metric, goal) in GOALS {
            if let Some(value) = self.value(System::Disk, metric) {
                let verdict = if value < *goal { "met" } else { "MISSED" };
                report.note(&format!("{metric}: {value:.3} (goal under {goal}: {verdict})"));
            }
        }
    }

    fn rows(&self, systems: &[System]) -> Vec<Row<'static>> {
        let row = |metric: &Metric| Row {
            metric: metric.name,
            unit: metric.unit,
            lower_is_better: metric.lower_is_better,
            values: systems.iter().map(|system| self.value(*system, metric.name)).collect(),
            // They are goals of the store on disk.
            goals: if systems[0] == System::Disk { metric.goals } else { &[] },
        };
        METRICS.iter().map(row).collect()
    }
}

/// Whether the first system was measured, and another.
fn is_compared(row: &Row<'_>) -> bool {
    row.values[0].is_some() && row.values[1..].iter().any(Option::is_some)
}
