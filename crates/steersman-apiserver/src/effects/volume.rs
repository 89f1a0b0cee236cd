//! Persistent volumes say when their phase changed.

use serde_json::Value;
use steersman_rules::metadata;

use crate::state::effects::{Effects, Write};

const TIME: &str = "lastPhaseTransitionTime";

/// Notes when the phase of a volume changed.
pub(super) struct Volumes;

impl Effects for Volumes {
    fn prepare(&self, write: Write<'_>, old: Option<&Value>, new: &mut Value) {
        // A new volume begins with a phase; an update of anything but the status leaves it.
        if old.is_none() {
            phase_changed(&Value::Null, new, write.now);
        }
    }

    fn prepare_part(&self, write: Write<'_>, old: &Value, new: &mut Value) {
        if write.subresource == "status" {
            phase_changed(old, new, write.now);
        }
    }
}

/// Notes in a volume when its phase changed, unless whoever writes says when.
fn phase_changed(old: &Value, new: &mut Value, now: &str) {
    let before = &old["status"];
    let status = &new["status"];
    let time = match before["phase"] == status["phase"] {
        true if status[TIME].is_null() => before[TIME].clone(),
        false if status[TIME].is_null() || status[TIME] == before[TIME] => now.into(),
        _ => return,
    };
    metadata::set_at(new, "status.lastPhaseTransitionTime", time);
}
