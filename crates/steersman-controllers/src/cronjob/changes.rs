//! When schedules were changed, as far as this process has seen it. What a new schedule would have
//! started before that was not missed. Whoever starts later cannot know, and catches up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec};
use steersman::informer::Event;
use steersman::{ObjectKey, clock};

/// The last change of every schedule that was changed. Clones share their content.
#[derive(Clone, Default)]
pub(super) struct Changes {
    times: Arc<Mutex<HashMap<ObjectKey, Timestamp>>>,
}

impl Changes {
    /// Takes a change of a CronJob into account.
    pub(super) fn observe(&self, event: &Event<CronJob>) {
        let key = event.object().key();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Updated { old, new } => {
                let (Some(old), Some(new)) = (old.object(), new.object()) else { return };
                if old.metadata.uid != new.metadata.uid {
                    times.remove(key); // another one took its name
                } else if differ(&old.spec, &new.spec) {
                    times.insert(key.clone(), clock::now());
                }
            }
            Event::Deleted { .. } => {
                times.remove(key);
            }
            _ => {}
        }
    }

    /// When the schedule of a CronJob was changed.
    pub(super) fn of(&self, key: &ObjectKey) -> Option<Timestamp> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }
}

/// Whether two schedules mean other times.
fn differ(old: &CronJobSpec, new: &CronJobSpec) -> bool {
    old.schedule != new.schedule || old.time_zone != new.time_zone
}
