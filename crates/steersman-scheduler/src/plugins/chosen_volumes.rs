//! Volumes that were chosen for Pods and are not seen bound yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Volumes that were chosen and are not seen bound yet, by name, with the uid of the Pod that gets
/// them. All profiles share them.
#[derive(Debug, Default)]
pub(crate) struct ChosenVolumes(Mutex<HashMap<String, Arc<str>>>);

impl ChosenVolumes {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses volumes for a Pod.
    pub(super) fn choose(&self, pod: &Arc<str>, volumes: impl Iterator<Item = String>) {
        self.lock().extend(volumes.map(|volume| (volume, Arc::clone(pod))));
    }

    /// The volumes that were chosen for other Pods.
    pub(super) fn of_others(&self, pod: &str) -> Vec<String> {
        let chosen = self.lock();
        chosen.iter().filter(|(_, it)| &***it != pod).map(|(name, _)| name.clone()).collect()
    }

    /// A Pod has its volumes, or gets none.
    pub(super) fn forget(&self, pod: &str) {
        self.lock().retain(|_, it| &**it != pod);
    }
}
