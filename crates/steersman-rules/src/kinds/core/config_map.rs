//! Config maps: text and bytes under keys, no key in both.

use serde_json::Value;

use super::data::{self, MAX_BYTES};
use crate::field::{FieldError, NOWHERE};
use crate::kinds::kind::Kind;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::table::cells::len;
use crate::table::{Column, age};

/// What is said of `ConfigMap`.
pub(super) const KIND: Kind = Kind {
    plural: "configmaps",
    name: "ConfigMap",
    short_names: &["cm"],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules { check, ..Rules::NONE };

/// What may not change is complained about first.
fn check(map: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    data::sealed(map, old, &["data", "binaryData"], errors);
    let texts = map.at("data");
    let bytes = map.at("binaryData");
    data::keys(&texts, errors);
    for (key, entry) in texts.entries() {
        if bytes.value.get(key).is_some() {
            errors.push(entry.invalid_value(key, "duplicate of key present in binaryData"));
        }
    }
    data::keys(&bytes, errors);
    if data::size(texts.value) + data::decoded_size(bytes.value) > MAX_BYTES {
        errors.push(FieldError::too_long(NOWHERE, MAX_BYTES));
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::count("Data", |map, _| (len(&map["data"]) + len(&map["binaryData"])).into())
            .called_text(),
        age(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::field::messages;

    #[test]
    fn keys_and_sizes_are_checked() {
        let errors = RULES.validate_create(&json!({"data": {"a/b": ""}}));
        assert_eq!(errors[0].field, "data[a/b]");
        let odd = json!({"data": {"a b": ""}, "binaryData": {"a b": "", "c d": ""}});
        let errors = RULES.validate_create(&odd);
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["data[a b]", "data[a b]", "binaryData[a b]", "binaryData[c d]"]);
        let both = json!({"data": {"a": ""}, "binaryData": {"a": ""}});
        assert_eq!(
            messages(&RULES.validate_create(&both)),
            ["data[a]: Invalid value: \"a\": duplicate of key present in binaryData"]
        );
        let large = json!({"data": {"a": "x".repeat(MAX_BYTES + 1)}});
        assert_eq!(
            messages(&RULES.validate_create(&large)),
            ["[]: Too long: may not be more than 1048576 bytes"]
        );
    }
}
