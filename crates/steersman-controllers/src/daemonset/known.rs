//! Which DaemonSets there are: a change of a node concerns all of them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::apps::v1::DaemonSet;
use steersman::ObjectKey;
use steersman::informer::Event;

/// The keys of all DaemonSets. Clones share their content.
#[derive(Clone, Default)]
pub(super) struct Known {
    keys: Arc<Mutex<HashSet<ObjectKey>>>,
}

impl Known {
    /// Takes a change of a DaemonSet into account.
    pub(super) fn observe(&self, event: &Event<DaemonSet>) {
        let key = event.object().key().clone();
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Deleted { .. } => drop(keys.remove(&key)),
            _ => drop(keys.insert(key)),
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<ObjectKey> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys: Vec<ObjectKey> = keys.iter().cloned().collect();
        keys.sort(); // so that a test comes out the same every time
        keys
    }
}
