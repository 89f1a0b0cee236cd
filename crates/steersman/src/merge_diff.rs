//! The JSON merge patch (RFC 7396) that turns one document into another.

use serde_json::{Map, Value};

/// The smallest merge patch from `old` to `new`; `None` if there is no difference.
pub(crate) fn merge_diff(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(old_fields), Value::Object(new_fields)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for name in old_fields.keys().filter(|name| !new_fields.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new_fields {
        let before = old_fields.get(name).unwrap_or(&Value::Null);
        if let Some(difference) = merge_diff(before, value) {
            patch.insert(name.clone(), difference);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_documents_need_no_patch() {
        assert_eq!(merge_diff(&json!({"a": [1, {"b": 2}]}), &json!({"a": [1, {"b": 2}]})), None);
    }

    #[test]
    fn only_what_differs_is_in_the_patch_and_removed_fields_are_null() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        let new = json!({"a": 1, "b": {"c": 4}, "e": [1, 2], "f": {}});
        let patch = json!({"b": {"c": 4, "d": null}, "e": [1, 2], "f": {}});
        assert_eq!(merge_diff(&old, &new), Some(patch));
    }

    #[test]
    fn a_first_status_is_written_whole() {
        assert_eq!(merge_diff(&Value::Null, &json!({"n": 0})), Some(json!({"n": 0})));
    }
}
