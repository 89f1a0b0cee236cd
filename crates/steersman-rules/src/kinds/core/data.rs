//! What config maps and secrets share: keys, sizes, and the promise not to change.

use serde_json::Value;

use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;

/// How much one object may hold.
pub(super) const MAX_BYTES: usize = 1024 * 1024;

/// The mistakes in the keys of a map.
pub(super) fn keys(data: &At<'_, '_>, errors: &mut Errors) {
    for (key, entry) in data.entries() {
        let complaints = names::config_key(key);
        errors.extend(complaints.iter().map(|why| entry.invalid_value(key, why)));
    }
}

/// The size of texts.
pub(super) fn size(data: &Value) -> usize {
    data.as_object().into_iter().flatten().map(|(_, value)| text(value).len()).sum()
}

/// The size of what is encoded, near enough for a limit.
pub(super) fn decoded_size(data: &Value) -> usize {
    let values = data.as_object().into_iter().flatten().map(|(_, value)| text(value));
    values.map(|value| value.trim_end_matches('=').len() * 3 / 4).sum()
}

/// Complains of each of these fields that changes in an object that is immutable.
pub(super) fn sealed(object: &At<'_, '_>, old: &Value, fields: &[&str], errors: &mut Errors) {
    if old["immutable"] != true {
        return;
    }
    for field in std::iter::once(&"immutable").chain(fields) {
        let part = object.at(field);
        if *part.value != old[*field] {
            errors.push(part.forbidden("field is immutable when `immutable` is set"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::field::messages;
    use crate::kinds::core::{config_map, secret};

    #[test]
    fn what_is_sealed_stays() {
        let old = json!({"immutable": true, "data": {"a": "1"}});
        let sealed = "Forbidden: field is immutable when `immutable` is set";
        for (new, expected) in [
            (json!({"immutable": true, "data": {"a": "1"}}), vec![]),
            (json!({"immutable": true, "data": {"a": "2"}}), vec![format!("data: {sealed}")]),
            (json!({"data": {"a": "1"}}), vec![format!("immutable: {sealed}")]),
        ] {
            assert_eq!(messages(&config_map::KIND.rules.validate_update(&old, &new)), expected);
            assert_eq!(messages(&secret::KIND.rules.validate_update(&old, &new)), expected);
        }
    }
}
