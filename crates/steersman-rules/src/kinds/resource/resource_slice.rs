//! `ResourceSlice`: devices that a driver offers, a part of a pool, and the nodes that reach them.

use std::collections::HashSet;

use serde_json::Value;

use super::capacity;
use super::device::{LIST_MAX, at_most, binding_conditions, pool_name};
use crate::kinds::core::persistent_volume::driver_name;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::label_selector::node_selector;
use crate::table::{Column, age};

const DEVICES_MAX: usize = 128;

/// What is said of `ResourceSlice`.
pub(super) const KIND: Kind = Kind {
    plural: "resourceslices",
    name: "ResourceSlice",
    traits: &[Trait::Generation],
    selectable_fields: &["spec.nodeName", "spec.driver"],
    rules: &RULES,
    effect: Some(Effect::ResourceSlice),
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    check,
    change: |slice, old, errors| {
        let spec = slice.at("spec");
        for key in ["nodeName", "driver"] {
            spec.at(key).unchanged(&old["spec"][key], errors);
        }
        let pool = spec.at("pool");
        pool.at("name").unchanged(&old["spec"]["pool"]["name"], errors);
    },
    ..Rules::NONE
};

fn check(slice: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                       `perDeviceNodeSelection` is required";
    let spec = slice.at("spec");
    let node = spec.at("nodeName");
    let selector = spec.at("nodeSelector");
    let chosen = [
        !node.is_empty(),
        selector.is_set(),
        spec.at("allNodes").is_true(),
        spec.at("perDeviceNodeSelection").is_true(),
    ];
    node.may_follow(names::dns1123_subdomain, errors);
    if selector.is_set() {
        node_selector(&selector, errors);
    }
    match chosen.iter().filter(|chosen| **chosen).count() {
        0 => errors.push(spec.required(ONE)),
        1 => {}
        _ => errors.push(spec.invalid_value(Value::Null, ONE)),
    }
    driver_name(&spec.at("driver"), errors);
    check_pool(&spec.at("pool"), errors);
    at_most(&spec.at("devices"), DEVICES_MAX, errors);
    let mut seen = HashSet::new();
    for device in spec.each("devices") {
        let name = device.at("name");
        name.follows(names::dns1123_label, errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(device.with(name.value).duplicate());
        }
        check_attributes(&device, errors);
        capacity::check(&device, errors);
        binding_conditions(&device, errors);
    }
}

fn check_pool(pool: &At<'_, '_>, errors: &mut Errors) {
    let count = pool.at("resourceSliceCount");
    pool_name(&pool.at("name"), errors);
    if count.number_or_zero() <= 0 {
        errors.push(count.invalid("must be greater than zero"));
    }
    pool.at("generation").not_negative(errors);
}

fn check_attributes(device: &At<'_, '_>, errors: &mut Errors) {
    let all = device.at("attributes").len() + device.at("capacity").len();
    if all > LIST_MAX {
        let detail =
            format!("the total number of attributes and capacities must not exceed {LIST_MAX}");
        errors.push(device.invalid_value(all, &detail));
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::field("Node", "spec.nodeName", ""),
        Column::field("Driver", "spec.driver", ""),
        Column::field("Pool", "spec.pool.name", ""),
        age(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::field::FieldError;

    #[test]
    fn conditions_of_devices_say_when_they_are_ready_and_that_they_never_are() {
        let told = |ready: &Value, failed: &Value| -> Vec<String> {
            let device = json!({"name": "a", "bindingConditions": ready,
                                "bindingFailureConditions": failed});
            let slice = json!({"metadata": {"name": "s"}, "spec": {
                "driver": "d.example.com", "nodeName": "n", "devices": [device],
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            }});
            RULES.validate_create(&slice).iter().map(FieldError::message).collect()
        };
        let at = "spec.devices[0].binding";
        let no_name = told(&json!(["?"]), &json!(["f"]));
        assert!(no_name[0].starts_with(&format!("{at}Conditions[0]: Invalid value: \"?\": ")));
        for (ready, failed, expected) in [
            (json!([]), json!([]), vec![]),
            (json!(["example.com/attached"]), json!(["failed"]), vec![]),
            (
                json!(["a", "b", "c", "d", "e"]),
                json!(["f"]),
                vec![format!("{at}Conditions: Too many: 5: must have at most 4 items")],
            ),
            (
                json!(["a", "a"]),
                json!(["f"]),
                vec![format!("{at}Conditions[1]: Duplicate value: \"a\"")],
            ),
            (
                json!(["a"]),
                json!(["f", "a"]),
                vec![format!(
                    "{at}FailureConditions[1]: Invalid value: \"a\": bindingFailureConditions must \
                     not overlap with bindingConditions"
                )],
            ),
            (
                json!(["a"]),
                json!([]),
                vec![format!(
                    "{at}FailureConditions: Invalid value: []: bindingFailureConditions are required \
                     to use bindingConditions"
                )],
            ),
            (
                json!([]),
                json!(["f"]),
                vec![format!(
                    "{at}Conditions: Invalid value: []: bindingConditions are required to use \
                     bindingFailureConditions"
                )],
            ),
        ] {
            assert_eq!(told(&ready, &failed), expected, "{ready:?} {failed:?}");
        }
    }
}
