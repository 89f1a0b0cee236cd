//! The mirrors that the API server shows, as they are heard of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use steersman::ObjectKey;
use steersman::informer::Event;

use super::is_mirror;

/// What the API server shows of static Pods. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Mirrors {
    pods: Arc<Mutex<HashMap<ObjectKey, Pod>>>,
}

impl Mirrors {
    /// Takes in what has happened to a Pod, and tells whether it is a mirror.
    pub(crate) fn take_in(&self, event: &Event<Pod>) -> bool {
        let Some(pod) = event.object().object().filter(|pod| is_mirror(pod)) else { return false };
        let key = event.object().key().clone();
        if let Event::Deleted { .. } = event {
            self.lock().remove(&key);
        } else {
            self.lock().insert(key, (*pod).clone());
        }
        true
    }

    /// The one of this name.
    pub(crate) fn of(&self, key: &ObjectKey) -> Option<Pod> {
        self.lock().get(key).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Pod> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Pod>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
