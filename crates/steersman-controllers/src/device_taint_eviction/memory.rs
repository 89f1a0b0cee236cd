//! What is decided about Pods, and what rules have done.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use steersman::ObjectKey;

use super::rule_status::PERIOD;
use crate::wakes::Wakes;

/// The Pods that are to go, and what rules have done. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Memory {
    shared: Arc<Mutex<Known>>,
    /// The rules whose status has to be looked at.
    pub(super) rules: Wakes,
}

#[derive(Default)]
struct Known {
    /// The Pods that are to go, because of these rules.
    scheduled: HashMap<ObjectKey, BTreeSet<String>>,
    deeds: HashMap<String, Deeds>,
}

/// What a rule has done.
#[derive(Clone, Copy, Default)]
struct Deeds {
    evicted: usize,
    /// When its status is to be told of what happened meanwhile.
    report_at: Option<Timestamp>,
}

impl Memory {
    /// Notes that a Pod is to go. If it was not, or not because of the same rules, they tell so after a
    /// while: more may come.
    pub(super) fn schedule(&self, pod: &ObjectKey, rules: &BTreeSet<String>, now: Timestamp) {
        let mut known = self.lock();
        let before = known.scheduled.insert(pod.clone(), rules.clone());
        if before.as_ref() != Some(rules) {
            self.report(&mut known, rules, now);
        }
    }

    /// Nothing is decided about a Pod any more. Gives whether anything was.
    pub(super) fn forget(&self, pod: &ObjectKey) -> bool {
        self.lock().scheduled.remove(pod).is_some()
    }

    /// Notes that a Pod is gone because of these rules.
    pub(super) fn evicted(&self, pod: &ObjectKey, rules: &BTreeSet<String>, now: Timestamp) {
        let mut known = self.lock();
        known.scheduled.remove(pod);
        for rule in rules {
            known.deeds.entry(rule.clone()).or_default().evicted += 1;
        }
        self.report(&mut known, rules, now);
    }

    fn report(&self, known: &mut Known, rules: &BTreeSet<String>, now: Timestamp) {
        for rule in rules {
            let deeds = known.deeds.entry(rule.clone()).or_default();
            deeds.report_at = deeds.report_at.or_else(|| now.checked_add(PERIOD).ok());
        }
        self.rules.wake(rules.iter().map(|rule| ObjectKey::named(rule.as_str())));
    }

    /// How many Pods have gone because of a rule, and when that has to be told.
    pub(super) fn done_by(&self, rule: &str) -> (usize, Option<Timestamp>) {
        let deeds = self.lock().deeds.get(rule).copied().unwrap_or_default();
        (deeds.evicted, deeds.report_at)
    }

    /// What a rule has done so far is told.
    pub(super) fn reported(&self, rule: &str) {
        if let Some(deeds) = self.lock().deeds.get_mut(rule) {
            deeds.report_at = None;
        }
    }

    /// A rule is no more.
    pub(super) fn forget_rule(&self, rule: &str) {
        self.lock().deeds.remove(rule);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
