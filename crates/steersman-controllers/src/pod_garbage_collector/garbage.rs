//! What may have to be removed: Pods that have ended, and since when others have no place.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::ObjectKey;
use steersman::informer::Event;

use super::plan::{self, Reason, Whereabouts};
use crate::pod::node_name;
use crate::pods_by_node::PodsByNode;
use crate::wakes::Wakes;

/// What may have to be removed. Clones share it.
#[derive(Clone)]
pub(super) struct Garbage {
    shared: Arc<Shared>,
}

struct Shared {
    terminated_max: usize,
    known: Mutex<Known>,
    pods: PodsByNode,
    wakes: Wakes,
}

#[derive(Default)]
struct Known {
    /// The nodes that there are.
    nodes: HashSet<Box<str>>,
    /// Those of them that are out of service.
    out_of_service: HashSet<Box<str>>,
    /// When the Pods of a node that is missing are removed.
    missing: HashMap<Box<str>, Timestamp>,
    /// When other Pods are removed.
    due: HashMap<ObjectKey, (Reason, Timestamp)>,
    /// Pods that were removed and whose end has not been seen yet.
    removed: HashSet<ObjectKey>,
    /// Pods that have ended, in the order in which they are removed.
    ended: BTreeSet<(Rank, ObjectKey)>,
    ranks: HashMap<ObjectKey, Rank>,
}

/// Before whom a Pod is removed.
type Rank = (bool, Timestamp, String);

impl Garbage {
    pub(super) fn new(terminated_max: usize) -> Self {
        let (known, pods, wakes) = (Mutex::default(), PodsByNode::default(), Wakes::default());
        Self { shared: Arc::new(Shared { terminated_max, known, pods, wakes }) }
    }

    /// Pods that have to be looked at since others have ended.
    pub(super) fn wakes(&self) -> &Wakes {
        &self.shared.wakes
    }

    /// Takes a change of a Pod into account.
    pub(super) fn observe(&self, event: &Event<Pod>) {
        self.shared.pods.observe(event);
        let key = event.object().key();
        let pod = event.object().object();
        let gone = matches!(event, Event::Deleted { .. });
        let ended = pod.filter(|pod| !gone && plan::has_ended(pod));
        let mut known = self.lock();
        if gone {
            known.due.remove(key);
            known.removed.remove(key);
        }
        known.count(key, ended.map(|pod| plan::rank(&pod)));
        let excess = known.ended.len().saturating_sub(self.shared.terminated_max);
        if excess > 0 {
            let oldest = known.ended.iter().take(excess).map(|(_, key)| key);
            let unknown = oldest.filter(|key| !known.due.contains_key(key));
            self.shared.wakes.wake(unknown.cloned().collect::<Vec<_>>());
        }
    }

    /// Takes a change of a Node into account. Gives the Pods that it concerns.
    pub(super) fn observe_node(&self, event: &Event<Node>) -> Vec<ObjectKey> {
        let name = &*event.object().key().name;
        let mut known = self.lock();
        let node = event.object().object().filter(|_| !matches!(event, Event::Deleted { .. }));
        let Some(node) = node else {
            known.nodes.remove(name);
            known.out_of_service.remove(name);
            return self.shared.pods.of(name);
        };
        known.missing.remove(name);
        let is_new = known.nodes.insert(name.into());
        let changed = match plan::out_of_service(&node) {
            true => known.out_of_service.insert(name.into()),
            false => known.out_of_service.remove(name),
        };
        if changed || is_new { self.shared.pods.of(name) } else { Vec::new() }
    }

    /// Whether there may be anything to do about a Pod.
    pub(super) fn concerns(&self, pod: &Pod) -> bool {
        let known = self.lock();
        self.reason(&known, pod).is_some()
            || (!known.due.is_empty() && known.due.contains_key(&ObjectKey::of(pod)))
    }

    /// A Pod was removed.
    pub(super) fn removed(&self, pod: &ObjectKey) {
        self.lock().removed.insert(pod.clone());
    }

    /// Why a Pod is removed and when, if it is.
    pub(super) fn due(&self, pod: &Pod, now: Timestamp) -> Option<(Reason, Timestamp)> {
        let mut known = self.lock();
        let key = ObjectKey::of(pod);
        let reason = self.reason(&known, pod).filter(|_| !known.removed.contains(&key));
        let noted = known.due.get(&key).copied().filter(|(noted, _)| Some(*noted) == reason);
        let Some(reason) = reason else {
            known.due.remove(&key);
            return None;
        };
        if let Some(due) = noted {
            return Some(due);
        }
        let at = match node_name(pod).filter(|_| reason == Reason::Orphaned) {
            Some(node) => {
                *known.missing.entry(node.into()).or_insert_with(|| plan::due(reason, now))
            }
            None => plan::due(reason, now),
        };
        known.due.insert(key, (reason, at));
        Some((reason, at))
    }

    fn reason(&self, known: &Known, pod: &Pod) -> Option<Reason> {
        let node = match node_name(pod) {
            Some(node) if !known.nodes.contains(node) => Whereabouts::Gone,
            Some(node) if known.out_of_service.contains(node) => Whereabouts::OutOfService,
            _ => Whereabouts::There,
        };
        let excess = known.ended.len().saturating_sub(self.shared.terminated_max);
        let too_many = excess > 0 && {
            let key = ObjectKey::of(pod);
            known.ended.iter().take(excess).any(|(_, it)| *it == key)
        };
        plan::reason(pod, node, too_many)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// A Pod has ended with this rank, or has not.
    fn count(&mut self, key: &ObjectKey, rank: Option<Rank>) {
        let old = match &rank {
            Some(rank) => self.ranks.insert(key.clone(), rank.clone()),
            None => self.ranks.remove(key),
        };
        if old == rank {
            return;
        }
        if let Some(old) = old {
            self.ended.remove(&(old, key.clone()));
        }
        if let Some(rank) = rank {
            self.ended.insert((rank, key.clone()));
        }
    }
}
