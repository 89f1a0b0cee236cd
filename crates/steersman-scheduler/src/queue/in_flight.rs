//! What happens while a Pod is being decided upon: it may help the Pod, which does not wait yet.

use std::collections::{BTreeMap, HashMap, VecDeque, vec_deque};
use std::sync::Arc;

use crate::framework::{ClusterEvent, PodInfo};

/// So many events are remembered; a Pod that takes longer is tried again in any case.
const EVENTS_MAX: usize = 4096;

/// The Pods that are being decided upon, and what happened meanwhile.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// By uid.
    pods: HashMap<Arc<str>, Decided>,
    events: VecDeque<ClusterEvent>,
    /// The number of the first of the events.
    first: u64,
}

/// A Pod that is being decided upon.
#[derive(Debug)]
struct Decided {
    /// The number of the first event after that has begun.
    began: u64,
    /// The Pod as it was last seen.
    info: Arc<PodInfo>,
}

/// What happened while a Pod was being decided upon.
#[derive(Debug)]
pub(super) enum Meanwhile<'a> {
    /// All of these.
    Events(vec_deque::Iter<'a, ClusterEvent>),
    /// More than is remembered.
    TooMany,
}

impl InFlight {
    /// Takes in that a Pod has changed, if it is being decided upon. What it was.
    pub(super) fn update(&mut self, info: &Arc<PodInfo>) -> Option<Arc<PodInfo>> {
        let decided = self.pods.get_mut(&info.uid)?;
        Some(std::mem::replace(&mut decided.info, Arc::clone(info)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    pub(super) fn begin(&mut self, info: Arc<PodInfo>) {
        let began = self.first + self.events.len() as u64;
        self.pods.insert(Arc::clone(&info.uid), Decided { began, info });
    }

    /// A Pod that was decided upon is not done with after all, unless that is known.
    pub(super) fn resume(&mut self, info: &Arc<PodInfo>) {
        if !self.pods.contains_key(&info.uid) {
            self.begin(Arc::clone(info));
        }
    }

    /// Remembers an event if somebody may need it.
    pub(super) fn note(&mut self, event: &ClusterEvent) {
        if self.pods.is_empty() {
            return;
        }
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
            self.first += 1;
        }
        self.events.push_back(event.clone());
    }

    /// What happened since the decision about a Pod began.
    pub(super) fn meanwhile(&self, uid: &str) -> Meanwhile<'_> {
        let came = self.first + self.events.len() as u64;
        let began = self.pods.get(uid).map_or(came, |it| it.began);
        match began.checked_sub(self.first) {
            None => Meanwhile::TooMany,
            Some(skipped) => {
                let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
                Meanwhile::Events(self.events.range(skipped.min(self.events.len())..))
            }
        }
    }

    /// How many events of each name are remembered, and for how many Pods.
    pub(super) fn counts(&self) -> BTreeMap<String, usize> {
        let mut of_names = BTreeMap::new();
        for event in &self.events {
            *of_names.entry(event.name()).or_default() += 1;
        }
        let named = of_names.into_iter().map(|(name, count)| (name.to_string(), count));
        let mut counts: BTreeMap<String, usize> = named.collect();
        counts.insert("PodPopped".to_owned(), self.pods.len());
        counts
    }

    /// Ends the decision about a Pod.
    pub(super) fn done(&mut self, uid: &str) {
        self.pods.remove(uid);
        self.forget_events();
    }

    fn forget_events(&mut self) {
        if self.pods.is_empty() {
            self.first += self.events.len() as u64;
            self.events.clear();
        }
    }
}
