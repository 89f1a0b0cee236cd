//! Rules for devices say since when what they do is done.

use serde_json::Value;

use crate::state::effects::{Effects, Write};

const TAINT: &str = "/spec/taint";
const TIME: &str = "timeAdded";

/// Notes when a taint was added that does not say so, and when its effect became another.
pub(super) struct Rules;

impl Effects for Rules {
    fn prepare(&self, write: Write<'_>, old: Option<&Value>, new: &mut Value) {
        let before = old.and_then(|old| old.pointer(TAINT));
        let Some(taint) = new.pointer_mut(TAINT).and_then(Value::as_object_mut) else { return };
        let is_unset = taint.get(TIME).is_none_or(Value::is_null);
        // A client that does not know better sends the time with the effect that it changes.
        let is_stale = before.is_some_and(|before| {
            taint.get("effect") != before.get("effect") && taint.get(TIME) == before.get(TIME)
        });
        if is_unset || is_stale {
            taint.insert(TIME.to_owned(), write.now.into());
        }
    }
}
