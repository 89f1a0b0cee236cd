//! Which Pods are bound to a node, to look at them again when it changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use steersman::ObjectKey;
use steersman::informer::Event;

use crate::pod;

/// The Pods of each node. Clones share their content.
#[derive(Clone, Default)]
pub(crate) struct PodsByNode {
    pods: Arc<Mutex<HashMap<Box<str>, BTreeSet<ObjectKey>>>>,
}

impl PodsByNode {
    /// Takes a change of a Pod into account. A Pod that is bound stays where it is.
    pub(crate) fn observe(&self, event: &Event<Pod>) {
        let item = event.object();
        let object = item.object();
        let Some(node) = object.as_deref().and_then(pod::node_name) else { return };
        let mut pods = self.lock();
        if let Event::Deleted { .. } = event {
            if let Some(of_node) = pods.get_mut(node) {
                of_node.remove(item.key());
                if of_node.is_empty() {
                    pods.remove(node);
                }
            }
        } else if !pods.get(node).is_some_and(|of_node| of_node.contains(item.key())) {
            pods.entry(node.into()).or_default().insert(item.key().clone());
        }
    }

    /// The Pods of a node.
    pub(crate) fn of(&self, node: &str) -> Vec<ObjectKey> {
        self.lock().get(node).into_iter().flatten().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, BTreeSet<ObjectKey>>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
