//! The patch languages: an object, `---`, a patch.

use serde_json::Value;
use steersman_rules::patch::{json_patch, merge_patch, strategic_merge_patch};

use crate::text::{document, object, parts, schema_of};

/// A JSON patch.
pub(crate) fn json(bytes: &[u8]) {
    let Some([object, patch]) = parts(bytes) else { return };
    let Some(object) = document(object) else { return };
    if let Ok(patched) = json_patch(&object, patch) {
        readable(&patched);
    }
}

/// A merge patch, which is the same a second time.
pub(crate) fn merge(bytes: &[u8]) {
    let Some([object, patch]) = parts(bytes) else { return };
    let Some(object) = document(object) else { return };
    let Ok(once) = merge_patch(&object, patch) else { return };
    readable(&once);
    let twice = merge_patch(&once, patch).expect("it was merged before");
    assert_eq!(twice, once, "a merge patch twice is the patch once");
}

/// A strategic merge patch, which is the same a second time unless it has directives: those may
/// name what is gone by then.
pub(crate) fn strategic(bytes: &[u8]) {
    let Some([live, patch]) = parts(bytes) else { return };
    let Some(live) = object(live) else { return };
    let schema = schema_of(&live);
    let Ok(once) = strategic_merge_patch(&schema, &live, patch) else { return };
    readable(&once);
    if patch.contains(&b'$') || object(patch).is_some_and(|patch| has_null(&patch)) {
        return;
    }
    if let Ok(twice) = strategic_merge_patch(&schema, &once, patch) {
        assert_eq!(twice, once, "a strategic merge patch twice is the patch once");
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// What comes of a patch is a document.
fn readable(patched: &Value) {
    let again: Value = serde_json::from_str(&patched.to_string()).expect("it is JSON");
    assert_eq!(&again, patched, "what comes of a patch can be stored");
}
