//! How long a Job waits before it replaces a Pod that failed: 10 seconds, twice as long after each
//! further failure, up to 10 minutes.
//!
//! As in Kubernetes the count of failures since the last success is known to nobody else, and
//! forgotten with the process. With a limit per index it stands in annotations of Pods instead.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::facts::{failures_before, finish_time, ignored_before};

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const MAX: SignedDuration = SignedDuration::from_secs(600);

/// Failures since the last success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    failures: i32,
    last: Option<Timestamp>,
}

impl Record {
    /// What is known once these Pods have finished too.
    pub(super) fn after(&self, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) -> Self {
        let last_success = succeeded.iter().map(|pod| finish_time(pod)).max();
        let before = if last_success.is_some() { Self::default() } else { self.clone() };
        let since: Vec<Timestamp> = failed
            .iter()
            .map(|pod| finish_time(pod))
            .filter(|time| last_success.is_none_or(|success| *time > success))
            .collect();
        let failures =
            before.failures.saturating_add(i32::try_from(since.len()).unwrap_or(i32::MAX));
        Self { failures, last: since.into_iter().max().or(before.last) }
    }

    /// How long to wait before the next Pod is created.
    pub(super) fn remaining(&self, now: Timestamp) -> Option<Duration> {
        remaining(self.failures, self.last?, now)
    }
}

/// How long to wait before a Pod is created in the place of this one, that failed.
pub(super) fn remaining_of_index(failed: &Pod, now: Timestamp) -> Option<Duration> {
    let failures = failures_before(failed).saturating_add(ignored_before(failed)).saturating_add(1);
    remaining(failures, finish_time(failed), now)
}

fn remaining(failures: i32, last: Timestamp, now: Timestamp) -> Option<Duration> {
    if failures <= 0 {
        return None;
    }
    let doublings = u32::try_from(failures - 1).unwrap_or(0).min(10);
    let delay = (FIRST * 2_i32.saturating_pow(doublings)).min(MAX);
    let left = delay - now.duration_since(last);
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

/// What is known of all Jobs, by their uids.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    jobs: Arc<Mutex<HashMap<String, Record>>>,
}

impl Records {
    pub(super) fn of(&self, uid: &str) -> Record {
        self.lock().get(uid).cloned().unwrap_or_default()
    }

    pub(super) fn keep(&self, uid: &str, record: Record) {
        if record != Record::default() || self.lock().contains_key(uid) {
            self.lock().insert(uid.to_owned(), record);
        }
    }

    /// Forgets a Job that has finished or is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
