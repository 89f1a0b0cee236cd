//! Attributes of a device: each is a number, a text, a version, or whether something is so.

use serde_json::{Map, Value};

use super::device::LIST_MAX;
use super::identifier;
use crate::field::{FieldError, FieldErrorKind, shown_as_json};
use crate::rules::at::{At, Errors};
use crate::rules::document::remove;

const VALUE_MAX: usize = 64;
/// So many attributes a device may have by another limit than [`LIST_MAX`], which counts capacities
/// with them.
const VALUES_MAX: usize = 48;
/// Attributes that are lists. Kubernetes 1.36 has them off, unless somebody asks for them.
const OFF: [&str; 4] = ["bools", "ints", "strings", "versions"];

/// Takes away what is off.
pub(super) fn drop_disabled(device: &mut Value) {
    let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
    for attribute in attributes.into_iter().flat_map(Map::values_mut) {
        for list in OFF {
            remove(attribute, list);
        }
    }
}

/// The mistakes in the attributes of a device.
pub(super) fn check(device: &At<'_, '_>, errors: &mut Errors) {
    let attributes = device.at("attributes");
    let all = attributes.len() + device.at("capacity").len();
    for (what, count, max) in [
        ("attributes and capacities", all, LIST_MAX),
        ("attribute values", attributes.len(), VALUES_MAX),
    ] {
        if count > max {
            let why = format!("the total number of {what} must not exceed {max}");
            errors.push(device.invalid_value(count, &why));
        }
    }
    identifier::entries(&attributes, check_value, errors);
}

fn check_value(attribute: &At<'_, '_>, errors: &mut Errors) {
    let values = ["int", "bool", "string", "version"].map(|field| attribute.at(field));
    let [_, _, text, version] = &values;
    if text.text().len() > VALUE_MAX {
        errors.push(text.too_long(VALUE_MAX));
    }
    if version.is_set() && !is_version(version.text()) {
        errors.push(version.invalid("must be a string compatible with semver.org spec 2.0.0"));
    }
    if version.text().len() > VALUE_MAX {
        errors.push(version.too_long(VALUE_MAX));
    }
    let shown = match values.iter().filter(|value| value.is_set()).count() {
        0 => "\"\"".to_owned(),
        1 => return,
        _ => {
            let [int, bool, string, version] = values.map(|value| shown_as_json(value.value));
            format!(
                "{{\"IntValue\":{int},\"BoolValue\":{bool},\"StringValue\":{string},\
                 \"VersionValue\":{version},\"IntValues\":null,\"BoolValues\":null,\
                 \"StringValues\":null,\"VersionValues\":null}}"
            )
        }
    };
    errors.push(FieldError {
        kind: FieldErrorKind::Invalid,
        field: attribute.path(),
        text: format!("Invalid value: {shown}: exactly one value must be specified"),
    });
}

/// Whether a text is a version as semver.org has them: `1.2.3-rc.1+build.5`.
fn is_version(text: &str) -> bool {
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, it)| (rest, Some(it)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, it)| (core, Some(it)));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let has_no_zeros = |part: &str| part == "0" || !part.starts_with('0');
    let is_number = |part: &str| is_word(part) && is_digits(part) && has_no_zeros(part);
    let is_pre = |part: &str| is_word(part) && (!is_digits(part) || has_no_zeros(part));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::resource::resource_slice::mistakes;

    #[test]
    fn an_attribute_has_one_value_that_is_not_too_long() {
        let at = "spec.devices[0].attributes[model]";
        let one = "exactly one value must be specified";
        let long = "x".repeat(65);
        let too_long = |kind: &str| format!("{at}.{kind}: Too long: may not be more than 64 bytes");
        let no_version = |text: &str| {
            format!(
                "{at}.version: Invalid value: {text:?}: must be a string compatible with \
                 semver.org spec 2.0.0"
            )
        };
        for (value, expected) in [
            (json!({"string": "x1"}), vec![]),
            (json!({"string": ""}), vec![]),
            (json!({"int": 0}), vec![]),
            (json!({"bool": false}), vec![]),
            (json!({"version": "1.2.3"}), vec![]),
            (json!({}), vec![format!("{at}: Invalid value: \"\": {one}")]),
            (
                json!({"bool": true, "string": "<"}),
                vec![format!(
                    "{at}: Invalid value: {{\"IntValue\":null,\"BoolValue\":true,\
                     \"StringValue\":\"\\u003c\",\"VersionValue\":null,\"IntValues\":null,\
                     \"BoolValues\":null,\"StringValues\":null,\"VersionValues\":null}}: {one}"
                )],
            ),
            (json!({"string": long}), vec![too_long("string")]),
            (json!({"version": ""}), vec![no_version("")]),
            (json!({"version": long}), vec![no_version(&long), too_long("version")]),
        ] {
            let device = json!({"name": "a", "attributes": {"model": value}});
            assert_eq!(mistakes(&json!({"devices": [device]})), expected, "{value}");
        }
    }

    #[test]
    fn versions_are_those_of_semver_org() {
        for text in ["0.0.0", "10.20.30", "1.2.3-rc.1", "1.2.3--", "1.0.0-0a+01.a-b", "1.0.0+5"] {
            assert!(is_version(text), "{text}");
        }
        for text in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "01.2.3",
            "1.2.3-01",
            "1.2.3-",
            "1.2.3+",
            "1.2.3+a+b",
            "v1.2.3",
        ] {
            assert!(!is_version(text), "{text}");
        }
    }

    #[test]
    fn a_device_has_so_many_attributes() {
        let attributes = |count: usize| -> Value {
            let all = (0..count).map(|number| (format!("a{number}"), json!({"int": number})));
            let all: Value = all.collect();
            json!([{"name": "a", "attributes": all}])
        };
        let at = "spec.devices[0]: Invalid value";
        let all = |count: usize| {
            format!(
                "{at}: {count}: the total number of attributes and capacities must not exceed 32"
            )
        };
        let values = format!("{at}: 49: the total number of attribute values must not exceed 48");
        for (count, expected) in
            [(32, vec![]), (33, vec![all(33)]), (48, vec![all(48)]), (49, vec![all(49), values])]
        {
            assert_eq!(mistakes(&json!({"devices": attributes(count)})), expected);
        }
    }
}
