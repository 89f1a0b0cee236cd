//! Fields of a status that a server does not keep.
//!
//! A definition whose schema lacks a field lets the server prune it without a word: a condition is
//! set in every reconcile and never seen. The answer to the write shows it, so it is looked at when
//! a field is written for the first time, and reported once.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// The fields of a controller's status that were looked at.
#[derive(Default)]
pub(crate) struct LookedAt(Mutex<HashSet<String>>);

impl LookedAt {
    /// Whether the answer to a write of these fields need not be looked at.
    pub(super) fn all_of(&self, written: &Value) -> bool {
        let seen = self.lock();
        fields(written).all(|field| seen.contains(field))
    }

    /// Looks at the answer to a write: which of the fields, not looked at before, it lacks.
    pub(super) fn missing(&self, written: &Value, status: &Value) -> Vec<String> {
        let mut seen = self.lock();
        let new = fields(written).filter(|field| seen.insert((*field).to_owned()));
        new.filter(|field| status.get(field).is_none()).map(str::to_owned).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fields that are set, at the top of a status: those that are removed or empty a server may
/// well leave out.
fn fields(written: &Value) -> impl Iterator<Item = &str> {
    let fields = written.as_object().into_iter().flatten();
    fields.filter(|(_, value)| !is_empty(value)).map(|(name, _)| name.as_str())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_missed_once_and_an_empty_one_never() {
        let looked_at = LookedAt::default();
        let written = json!({"phase": "Ready", "conditions": [{"type": "Ready"}], "gone": null});
        assert!(!looked_at.all_of(&written));
        let kept = json!({"phase": "Ready"});
        assert_eq!(looked_at.missing(&written, &kept), ["conditions"]);
        assert!(looked_at.all_of(&written));
        assert_eq!(looked_at.missing(&written, &kept), [""; 0]);
        assert!(looked_at.all_of(&json!({"list": []})), "nothing is set");
    }
}
