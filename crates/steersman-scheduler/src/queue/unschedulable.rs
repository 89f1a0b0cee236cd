//! The Pods that fit nowhere, those together that were refused by the same.
//!
//! Whether an event may matter to a Pod follows from who refused it. Thousands of Pods have been refused
//! by few sets of plug-ins, and an event is compared with those.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::pending::Pending;
use crate::framework::PodInfo;

/// Who refused a Pod, or keeps it from being queued.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refusers {
    pub(super) profile: Arc<str>,
    /// Those that know what helps,
    pub(super) plugins: BTreeSet<&'static str>,
    /// those that wait for something outside,
    pub(super) waits_for: BTreeSet<&'static str>,
    /// and who keeps it from being queued.
    pub(super) gated_by: Option<&'static str>,
}

impl Refusers {
    fn of(pending: &Pending) -> Self {
        Self {
            profile: Arc::clone(&pending.info.scheduler_name),
            plugins: pending.plugins.clone(),
            waits_for: pending.waits_for.clone(),
            gated_by: pending.gated_by,
        }
    }
}

/// The Pods that fit nowhere, by uid.
#[derive(Debug, Default)]
pub(super) struct Unschedulable {
    pods: HashMap<Arc<str>, Pending>,
    /// The same by who refused them; none is empty.
    refused: HashMap<Refusers, HashSet<Arc<str>>>,
}

impl Unschedulable {
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.pods.values()
    }

    pub(super) fn get(&self, uid: &str) -> Option<&Pending> {
        self.pods.get(uid)
    }

    /// Those that were refused by whom something concerns.
    pub(super) fn refused_by(&self, concerns: impl Fn(&Refusers) -> bool) -> Vec<Arc<str>> {
        let concerned = self.refused.iter().filter(|(refusers, _)| concerns(refusers));
        concerned.flat_map(|(_, uids)| uids).cloned().collect()
    }

    pub(super) fn insert(&mut self, pending: Pending) {
        let uid = Arc::clone(&pending.info.uid);
        self.remove(&uid);
        self.refused.entry(Refusers::of(&pending)).or_default().insert(Arc::clone(&uid));
        self.pods.insert(uid, pending);
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<Pending> {
        let pending = self.pods.remove(uid)?;
        let refusers = Refusers::of(&pending);
        if let Some(uids) = self.refused.get_mut(&refusers) {
            uids.remove(uid);
            if uids.is_empty() {
                self.refused.remove(&refusers);
            }
        }
        Some(pending)
    }

    /// Takes in that a Pod has changed, if it is there. What it was.
    pub(super) fn update(&mut self, info: &Arc<PodInfo>) -> Option<Arc<PodInfo>> {
        let pending = self.pods.get_mut(&info.uid)?;
        Some(std::mem::replace(&mut pending.queued.info, Arc::clone(info)))
    }

    /// Nobody keeps a Pod from being queued any more.
    pub(super) fn ungate(&mut self, uid: &str) {
        if self.get(uid).is_some_and(|pending| pending.gated_by.is_some())
            && let Some(mut pending) = self.remove(uid)
        {
            pending.gated_by = None;
            self.insert(pending);
        }
    }
}
