//! Slices of devices say since when a device is tainted.

use serde_json::Value;

use crate::state::effects::{Effects, Write};

const TIME: &str = "timeAdded";

/// Notes when taints were added that do not say so.
pub(super) struct Slices;

impl Effects for Slices {
    fn prepare(&self, write: Write<'_>, _old: Option<&Value>, new: &mut Value) {
        let devices = new.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
        for device in devices.into_iter().flatten() {
            let taints = device.get_mut("taints").and_then(Value::as_array_mut);
            let taints = taints.into_iter().flatten().filter_map(Value::as_object_mut);
            for taint in taints.filter(|taint| taint.get(TIME).is_none_or(Value::is_null)) {
                taint.insert(TIME.to_owned(), write.now.into());
            }
        }
    }
}
