//! Which nodes are tainted, and which of their Pods are to go when.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::ObjectKey;
use steersman::events::Recorder;
use steersman::informer::Event;

use super::events::cancelled;
use super::plan::Scheduled;
use crate::node::no_execute_taints;
use crate::pod::node_name;
use crate::pods_by_node::PodsByNode;

/// What is decided about Pods. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Evictions {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    pods: PodsByNode,
    /// By whom people are told, from the first reconcile on.
    recorder: OnceLock<Recorder>,
}

#[derive(Default)]
struct Known {
    /// The nodes with a `NoExecute` taint.
    tainted: HashSet<Box<str>>,
    scheduled: HashMap<ObjectKey, Scheduled>,
}

impl Evictions {
    /// Takes a change of a Pod into account. If one is gone that was to go, that is over.
    pub(super) fn observe(&self, event: &Event<Pod>) {
        self.shared.pods.observe(event);
        if let Event::Deleted { object, .. } = event
            && self.forget(object.key())
            && let Some(recorder) = self.shared.recorder.get()
        {
            cancelled(recorder, object.key());
        }
    }

    /// Takes a change of a Node into account. Gives the Pods that it concerns.
    pub(super) fn observe_node(&self, event: &Event<Node>) -> Vec<ObjectKey> {
        let name = &event.object().key().name;
        let node = event.object().object();
        let gone = matches!(event, Event::Deleted { .. });
        let is_tainted = !gone && node.is_some_and(|node| !no_execute_taints(&node).is_empty());
        let mut known = self.lock();
        let was_tainted = match is_tainted {
            true => !known.tainted.insert((&**name).into()),
            false => known.tainted.remove(&**name),
        };
        drop(known);
        if is_tainted || was_tainted { self.shared.pods.of(name) } else { Vec::new() }
    }

    /// Whether there may be anything to decide about a Pod.
    pub(super) fn concerns(&self, pod: &Pod) -> bool {
        let known = self.lock();
        node_name(pod).is_some_and(|node| known.tainted.contains(node))
            || (!known.scheduled.is_empty() && known.scheduled.contains_key(&ObjectKey::of(pod)))
    }

    /// What was decided about a Pod.
    pub(super) fn scheduled(&self, pod: &ObjectKey) -> Option<Scheduled> {
        self.lock().scheduled.get(pod).copied()
    }

    /// Notes what is decided about a Pod.
    pub(super) fn schedule(&self, pod: &ObjectKey, scheduled: Scheduled) {
        self.lock().scheduled.insert(pod.clone(), scheduled);
    }

    /// Nothing is decided about a Pod any more. Gives whether anything was.
    pub(super) fn forget(&self, pod: &ObjectKey) -> bool {
        self.lock().scheduled.remove(pod).is_some()
    }

    /// Tells people by this recorder.
    pub(super) fn tell_by(&self, recorder: &Recorder) {
        self.shared.recorder.get_or_init(|| recorder.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
