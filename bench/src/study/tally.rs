//! What a controller under study has done, counted from its records and its events.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steersman::controller::ReconcileRecord;
use steersman::{ObjectKey, clock};
use steersman_load::Histogram;

use crate::processes::wire::nanoseconds;

/// What all shards have done.
pub(super) struct Tally {
    /// Which AppServices have been reconciled, by number.
    seen: Vec<AtomicBool>,
    settled: AtomicUsize,
    reconciles: AtomicU64,
    failures: AtomicU64,
    /// Records that nobody had time for.
    unheard: AtomicU64,
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    reconciles: Histogram,
    changes: Histogram,
    /// Changes that nobody has reconciled yet: when they were made, and when they were heard of.
    open: HashMap<ObjectKey, (u64, u64)>,
    changed: u64,
    /// Since when changes count.
    since: u64,
}

impl Tally {
    /// For so many AppServices.
    pub(super) fn new(most: usize) -> Self {
        Self {
            seen: (0..most).map(|_| AtomicBool::new(false)).collect(),
            settled: AtomicUsize::new(0),
            reconciles: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            unheard: AtomicU64::new(0),
            times: Mutex::default(),
        }
    }

    /// Forgets everything but which AppServices there are.
    pub(super) fn begin(&self) {
        for counter in [&self.reconciles, &self.failures, &self.unheard] {
            counter.store(0, Ordering::Relaxed);
        }
        *self.times() = Times { since: nanoseconds(), ..Times::default() };
    }

    /// A change of an AppService was heard of that was made then. Of several shards only one reconciles
    /// it.
    pub(super) fn heard(&self, key: &ObjectKey, made: u64) {
        // By the clock of records, with which this is compared: the system's drifts away from it.
        let now = u64::try_from(clock::now().as_nanosecond()).unwrap_or_default();
        let mut times = self.times();
        if made < times.since {
            return;
        }
        let known = times.open.entry(key.clone()).or_insert((made, now));
        if known.0 < made {
            *known = (made, now);
        }
    }

    /// A reconcile has ended.
    pub(super) fn reconciled(&self, record: &ReconcileRecord) {
        self.reconciles.fetch_add(1, Ordering::Relaxed);
        if record.outcome.is_failure() {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let number = record.key.name.rsplit('-').next().and_then(|number| number.parse().ok());
        let seen = number.and_then(|number: usize| self.seen.get(number));
        if seen.is_some_and(|seen| !seen.swap(true, Ordering::Relaxed)) {
            self.settled.fetch_add(1, Ordering::Relaxed);
        }
        let started = u64::try_from(record.started.as_nanosecond()).unwrap_or_default();
        let ended = started.saturating_add(nanos(record.duration));
        let mut times = self.times();
        times.reconciles.record(record.duration);
        // One that began before the change was heard of has seen what was before it.
        let open = times.open.get(&record.key).copied();
        if let Some((made, _)) = open.filter(|(_, heard)| *heard <= started) {
            times.open.insert(record.key.clone(), (made, u64::MAX));
            times.changes.record(Duration::from_nanos(ended.saturating_sub(made)));
            times.changed += 1;
        }
    }

    /// So many records were lost.
    pub(super) fn lost(&self, records: u64) {
        self.unheard.fetch_add(records, Ordering::Relaxed);
    }

    /// Everything, by name.
    pub(super) fn figures(&self) -> Vec<(&'static str, f64)> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let times = self.times();
        let millis =
            |histogram: &Histogram, part: f64| histogram.quantile(part).as_secs_f64() * 1000.0;
        vec![
            ("settled", self.settled.load(Ordering::Relaxed) as f64),
            ("reconciles", count(&self.reconciles)),
            ("failures", count(&self.failures)),
            ("unheard", count(&self.unheard)),
            ("changes", times.changed as f64),
            ("reconcile_p50_ms", millis(&times.reconciles, 0.50)),
            ("reconcile_p99_ms", millis(&times.reconciles, 0.99)),
            ("change_p50_ms", millis(&times.changes, 0.50)),
            ("change_p99_ms", millis(&times.changes, 0.99)),
        ]
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
