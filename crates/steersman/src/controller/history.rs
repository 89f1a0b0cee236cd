//! What a controller did lately: its last reconciles, what runs now, what failed last.
//!
//! Everything is bounded. A reconcile costs a lock that it shares with nobody at its beginning
//! and at its end, and one that all workers share when it is over. The debug page reads it through [`ControllerHistory`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use super::record::ReconcileRecord;
use crate::cause::Causes;
use crate::hot_loop::HotLoop;
use crate::object::ObjectKey;

/// How many reconciles are kept.
const RECORDS_KEPT: usize = 256;
/// Of how many keys the last error is kept.
const ERRORS_KEPT: usize = 1024;

/// What a controller did lately, at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerHistory {
    /// The controller's name.
    pub controller: String,
    /// How many objects it reconciles at the same time at most.
    pub concurrency: usize,
    /// What it is reconciling.
    pub running: Vec<RunningReconcile>,
    /// What it reconciled last, the latest first.
    #[serde(serialize_with = "as_list")]
    pub recent: Vec<Arc<ReconcileRecord>>,
    /// The keys whose last reconcile failed, with that reconcile; the latest first.
    #[serde(serialize_with = "as_list")]
    pub failing: Vec<Arc<ReconcileRecord>>,
    /// The keys that keep themselves busy, and are slowed because of it.
    pub hot_loops: Vec<HotLoop>,
}

/// A reconcile that runs.
#[derive(Clone, Debug, Serialize)]
pub struct RunningReconcile {
    /// Which object.
    pub key: ObjectKey,
    /// The number of this reconcile.
    pub id: u64,
    /// Why it happens.
    pub causes: Causes,
    /// Since when.
    #[serde(serialize_with = "as_text")]
    pub since: Timestamp,
}

fn as_list<S: serde::Serializer>(
    records: &[Arc<ReconcileRecord>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(records.iter().map(|record| &**record))
}

fn as_text<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

/// Keeps what a controller did lately.
pub(crate) struct History {
    state: Mutex<State>,
    /// What each worker does. Each has a lock of its own, which only who looks disturbs.
    running: Vec<Mutex<Option<RunningReconcile>>>,
}

struct State {
    records: VecDeque<Arc<ReconcileRecord>>,
    /// Only keys whose last reconcile failed.
    failing: HashMap<ObjectKey, Arc<ReconcileRecord>>,
}

/// Which worker reconciles.
pub(crate) type Slot = usize;

impl History {
    /// The history of a controller with this many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let running = (0..workers).map(|_| Mutex::default()).collect();
        let state = State { records: VecDeque::new(), failing: HashMap::new() };
        Self { state: Mutex::new(state), running }
    }

    /// A worker begins to reconcile; it does so until what this gives is dropped.
    pub(crate) fn begin(&self, slot: Slot, running: RunningReconcile) -> Begun<'_> {
        let place = self.running.get(slot);
        if let Some(place) = place {
            *lock(place) = Some(running);
        }
        Begun { place }
    }

    /// A reconcile has ended.
    pub(crate) fn add(&self, record: &Arc<ReconcileRecord>) {
        let mut state = self.lock();
        let full = state.records.len() == RECORDS_KEPT;
        let forgotten = full.then(|| state.records.pop_front());
        state.records.push_back(Arc::clone(record));
        if record.outcome.is_failure() {
            state.failed(record);
        } else if !state.failing.is_empty() {
            state.failing.remove(&record.key);
        }
        drop(state);
        drop(forgotten); // not under the lock
    }

    /// The object is gone, and with it what was wrong with it.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        let mut state = self.lock();
        if !state.failing.is_empty() {
            state.failing.remove(key);
        }
    }

    /// What is running, what ran last, and what fails, each the latest first.
    pub(crate) fn shown(&self) -> (Vec<RunningReconcile>, Records, Records) {
        let mut running: Vec<_> =
            self.running.iter().filter_map(|place| lock(place).clone()).collect();
        let state = self.lock();
        let mut failing: Records = state.failing.values().cloned().collect();
        let recent = state.records.iter().rev().cloned().collect();
        drop(state);
        running.sort_by_key(|running| running.since);
        failing.sort_by_key(|record| std::cmp::Reverse(record.id));
        (running, recent, failing)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

type Records = Vec<Arc<ReconcileRecord>>;

/// A reconcile that runs, as its worker holds it.
pub(crate) struct Begun<'a> {
    place: Option<&'a Mutex<Option<RunningReconcile>>>,
}

impl Drop for Begun<'_> {
    /// Also if the reconcile is aborted.
    fn drop(&mut self) {
        let ended = self.place.and_then(|place| lock(place).take());
        drop(ended); // not under the lock
    }
}

impl State {
    fn failed(&mut self, record: &Arc<ReconcileRecord>) {
        if self.failing.len() >= ERRORS_KEPT && !self.failing.contains_key(&record.key) {
            let oldest = self.failing.values().min_by_key(|record| record.id);
            if let Some(key) = oldest.map(|record| record.key.clone()) {
                self.failing.remove(&key);
            }
        }
        self.failing.insert(record.key.clone(), Arc::clone(record));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::controller::Outcome;

    fn record(id: u64, name: &str, outcome: Outcome) -> Arc<ReconcileRecord> {
        Arc::new(ReconcileRecord {
            controller: "c".into(),
            key: ObjectKey::from(name),
            id,
            causes: Causes::default(),
            outcome,
            started: Timestamp::UNIX_EPOCH,
            duration: Duration::from_millis(1500),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_fails_until_it_succeeds_and_runs_until_it_ends() {
        let history = History::new(2);
        let begun = history.begin(
            1,
            RunningReconcile {
                key: ObjectKey::from("a"),
                id: 1,
                causes: Causes::default(),
                since: Timestamp::UNIX_EPOCH,
            },
        );
        assert_eq!(history.shown().0[0].key.to_string(), "a");
        drop(begun);
        history.add(&record(1, "a", Outcome::Failed("no".into())));
        let (running, recent, failing) = history.shown();
        assert!(running.is_empty());
        assert_eq!((recent.len(), failing.len()), (1, 1));
        history.add(&record(2, "a", Outcome::Settled));
        let (_, recent, failing) = history.shown();
        assert_eq!((recent[0].id, recent.len(), failing.len()), (2, 2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_bounded_and_the_oldest_goes() {
        let history = History::new(1);
        for id in 0..(ERRORS_KEPT as u64 + 10) {
            history.add(&record(id, &format!("k-{id}"), Outcome::TimedOut));
        }
        let (_, recent, failing) = history.shown();
        assert_eq!((recent.len(), failing.len()), (RECORDS_KEPT, ERRORS_KEPT));
        assert_eq!(failing.last().map(|record| record.id), Some(10));
    }

    #[test]
    fn a_record_is_told_in_words() {
        let text = serde_json::to_value(&*record(7, "default/a", Outcome::TimedOut)).unwrap();
        let expected = serde_json::json!({"controller": "c", "key": "default/a", "id": 7,
            "causes": [], "outcome": "timed out", "started": "1970-01-01T00:00:00Z",
            "seconds": 1.5});
        assert_eq!(text, expected);
    }
}
