//! `ResourceSlice`: devices that a driver offers, a part of a pool, and the nodes that reach them.

use serde_json::Value;
use steersman_values::quoted;

use super::device::{at_most, binding_conditions, named, pool_name, unique};
use super::{attribute, capacity, counters, nodes, taint};
use crate::kinds::core::persistent_volume::driver_name;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, is_empty, items, remove, text, within_existing};
use crate::table::{Column, age};

const DEVICES_MAX: usize = 128;
/// So many devices a slice has at most if one of them has taints or takes of counters.
const SPECIAL_DEVICES_MAX: usize = 64;

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
    create: drop_disabled,
    keep: |_, slice| drop_disabled(slice),
    check,
    warn,
    ..Rules::NONE
};

/// Takes away what Kubernetes 1.36 has off, unless somebody asks for it.
fn drop_disabled(slice: &mut Value) {
    within_existing(slice, "spec", |spec| {
        each(spec, "devices", |device| {
            remove(device, "nodeAllocatableResourceMappings");
            attribute::drop_disabled(device);
        });
    });
}

fn check(slice: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = slice.at("spec");
    let before = &old["spec"];
    driver_name(&spec.at("driver"), errors);
    check_pool(&spec.at("pool"), errors);
    if !old.is_null() {
        spec.at("pool.name").unchanged(&before["pool"]["name"], errors);
        for field in ["driver", "nodeName"] {
            spec.at(field).unchanged(&before[field], errors);
        }
    }
    nodes::of_slice(&spec, errors);
    let devices = spec.at("devices");
    if spec.at("sharedCounters").is_set() && devices.is_set() {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(spec.invalid_value("", why));
    }
    if at_most(&devices, devices_max(devices.list()), errors) {
        let is_up_to_devices = spec.at("perDeviceNodeSelection").is_true();
        for device in devices.items() {
            let mut known = items(&before["devices"]).iter();
            let old = known.find(|old| old["name"] == device.value["name"]);
            check_device(&device, old.unwrap_or(&Value::Null), errors);
            nodes::of_device(&device, is_up_to_devices, errors);
            binding_conditions(&device, errors);
        }
        unique(&devices, |device| text(&device["name"]), errors);
    }
    counters::shared(&spec, errors);
}

fn check_pool(pool: &At<'_, '_>, errors: &mut Errors) {
    let [count, generation] =
        ["resourceSliceCount", "generation"].map(|field| pool.at(field).number_or_zero());
    pool_name(&pool.at("name"), errors);
    if count <= 0 {
        let why = "must be greater than zero";
        errors.push(pool.at("resourceSliceCount").invalid_value(count, why));
    }
    if generation < 0 {
        errors.push(pool.at("generation").invalid("must be greater than or equal to zero"));
    }
}

fn devices_max(devices: &[Value]) -> usize {
    let is_special =
        |device: &Value| !is_empty(&device["taints"]) || !is_empty(&device["consumesCounters"]);
    if devices.iter().any(is_special) { SPECIAL_DEVICES_MAX } else { DEVICES_MAX }
}

fn check_device(device: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    named(&device.at("name"), names::dns1123_label, errors);
    attribute::check(device, errors);
    capacity::check(device, errors);
    taint::check_all(device, old, errors);
    counters::consumed(device, errors);
}

fn warn(slice: &Value, _old: Option<&Value>) -> Vec<String> {
    let driver = text(&slice["spec"]["driver"]);
    if driver == driver.to_lowercase() {
        return Vec::new();
    }
    let driver = quoted(driver);
    let why = "contains uppercase characters";
    vec![format!("spec.driver: driver names should be lowercase; {driver} {why}")]
}

fn columns() -> Vec<Column> {
    vec![
        Column::field("Node", "spec.nodeName", ""),
        Column::field("Driver", "spec.driver", ""),
        Column::field("Pool", "spec.pool.name", ""),
        age(),
    ]
}

/// The mistakes in a slice that has none but for these fields of its spec.
#[cfg(test)]
pub(super) fn mistakes(changes: &Value) -> Vec<String> {
    crate::field::messages(&RULES.validate_create(&tests::slice(changes)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::field::messages;

    pub(super) fn slice(changes: &Value) -> Value {
        let mut spec = json!({"driver": "d.example.com", "nodeName": "n",
                              "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}});
        for (field, value) in changes.as_object().unwrap() {
            spec[field] = value.clone();
        }
        json!({"metadata": {"name": "s"}, "spec": spec})
    }

    #[test]
    fn a_slice_is_a_part_of_a_pool() {
        for (spec, expected) in [
            (json!({"pool": {"name": "a/b", "resourceSliceCount": 1}}), vec![]),
            (
                json!({"driver": "", "pool": {"generation": -1}}),
                vec![
                    "spec.driver: Required value",
                    "spec.pool.name: Required value",
                    "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
                    "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
                ],
            ),
            (
                json!({"sharedCounters": [], "devices": []}),
                vec![
                    "spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed",
                ],
            ),
        ] {
            assert_eq!(mistakes(&spec), expected, "{spec}");
        }
    }

    #[test]
    fn a_slice_has_fewer_devices_if_some_are_special() {
        let with = |count: usize, first: Value| {
            let plain = (0..count).map(|number| json!({"name": format!("d{number}")}));
            let mut devices: Vec<Value> = plain.collect();
            devices[0] = first;
            mistakes(&json!({"devices": devices}))
        };
        let too_many = |count: usize, max: usize| {
            vec![format!("spec.devices: Too many: {count}: must have at most {max} items")]
        };
        let plain = json!({"name": "a"});
        let tainted = json!({"name": "a", "taints": [{"key": "k", "effect": "None"}]});
        let counters = json!({"memory": {"value": "1"}});
        let counted =
            json!({"name": "a", "consumesCounters": [{"counterSet": "s", "counters": counters}]});
        for (count, first, expected) in [
            (128, plain.clone(), vec![]),
            (129, plain, too_many(129, 128)),
            (64, tainted.clone(), vec![]),
            (65, tainted, too_many(65, 64)),
            (64, counted.clone(), vec![]),
            (65, counted, too_many(65, 64)),
        ] {
            assert_eq!(with(count, first), expected);
        }
        let twice = json!([{"name": "a"}, {"name": "a"}]);
        let expected = ["spec.devices[1]: Duplicate value: \"a\""];
        assert_eq!(mistakes(&json!({"devices": twice})), expected);
    }

    #[test]
    fn taints_that_were_there_already_stay() {
        let with = |effect: &str| {
            slice(&json!({"devices": [{"name": "a", "taints": [{"key": "k", "effect": effect}]}]}))
        };
        assert!(RULES.validate_update(&with("Future"), &with("Future")).is_empty());
        let changed = RULES.validate_update(&with("Future"), &with("Other"));
        let why = "spec.devices[0].taints[0].effect: Unsupported value: \"Other\": supported \
                   values: \"NoExecute\", \"NoSchedule\", \"None\"";
        assert_eq!(messages(&changed), [why]);
    }

    #[test]
    fn the_place_of_a_slice_stays() {
        let pool = json!({"name": "q", "resourceSliceCount": 1});
        let new = slice(&json!({"driver": "e", "nodeName": null, "allNodes": true, "pool": pool}));
        let changed = RULES.validate_update(&slice(&json!({})), &new);
        let expected = [
            "spec.pool.name: Invalid value: \"q\": field is immutable",
            "spec.driver: Invalid value: \"e\": field is immutable",
            "spec.nodeName: Invalid value: null: field is immutable",
        ];
        assert_eq!(messages(&changed), expected);
    }

    #[test]
    fn what_is_off_is_not_kept() {
        let attribute = json!({"string": "x1", "strings": ["x1"], "ints": [1], "bools": [true],
                               "versions": ["1.0.0"]});
        let mut new = slice(&json!({"devices": [{
            "name": "a", "attributes": {"model": attribute},
            "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "1"}},
        }]}));
        let expected =
            slice(&json!({"devices": [{"name": "a", "attributes": {"model": {"string": "x1"}}}]}));
        let mut updated = new.clone();
        RULES.prepare_create(&mut new);
        assert_eq!(new, expected);
        RULES.prepare_update(&expected, &mut updated);
        assert_eq!(updated, expected);
    }

    #[test]
    fn names_of_drivers_should_be_in_lower_case() {
        let of = |driver: &str| RULES.warnings(&slice(&json!({"driver": driver})), None);
        assert!(of("d.example.com").is_empty());
        let why = "spec.driver: driver names should be lowercase; \"D.example.com\" contains \
                   uppercase characters";
        assert_eq!(of("D.example.com"), [why]);
    }

    #[test]
    fn conditions_of_devices_say_when_they_are_ready_and_that_they_never_are() {
        let told = |ready: &Value, failed: &Value| -> Vec<String> {
            let device = json!({"name": "a", "bindingConditions": ready,
                                "bindingFailureConditions": failed});
            mistakes(&json!({"devices": [device]}))
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
