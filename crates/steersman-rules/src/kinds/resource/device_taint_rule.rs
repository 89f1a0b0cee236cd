//! `DeviceTaintRule`: a taint for all devices that it selects, whoever offers them. Kubernetes 1.36
//! serves it at `v1beta2`, and only on request.

use serde_json::{Value, json};

use super::device::{at_most, named, pool_name};
use super::taint;
use crate::kinds::core::persistent_volume::driver_name;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::condition::conditions;
use crate::table::duration::since;
use crate::table::{Column, age};

const CONDITIONS_MAX: usize = 8;

/// What is said of `DeviceTaintRule`.
pub(super) const KIND: Kind = Kind {
    plural: "devicetaintrules",
    name: "DeviceTaintRule",
    traits: &[Trait::OnRequest, Trait::Generation, Trait::StatusAlone, Trait::Status],
    rules: &RULES,
    effect: Some(Effect::DeviceTaintRule),
    columns,
    ..Kind::of_cluster(super::GROUP, "v1beta2")
};

const RULES: Rules = Rules { status: Some(|| json!({})), check, check_status, ..Rules::NONE };

fn check(rule: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = rule.at("spec");
    let selector = spec.at("deviceSelector");
    let [driver, pool, device] = ["driver", "pool", "device"].map(|field| selector.at(field));
    if driver.is_set() {
        driver_name(&driver, errors);
    }
    if pool.is_set() {
        pool_name(&pool, errors);
    }
    if device.is_set() {
        named(&device, names::dns1123_label, errors);
    }
    taint::check(&spec.at("taint"), &old["spec"]["taint"], errors);
}

fn check_status(rule: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let status = rule.at("status");
    let list = status.at("conditions");
    conditions(&list, errors);
    at_most(&list, CONDITIONS_MAX, errors);
}

fn columns() -> Vec<Column> {
    vec![
        Column::field("Key", "spec.taint.key", ""),
        Column::field("Value", "spec.taint.value", ""),
        Column::field("Effect", "spec.taint.effect", ""),
        Column::text("TimeAdded", |rule, now| match rule["spec"]["taint"]["timeAdded"].as_str() {
            Some(added) => since(added, now).into(),
            None => "".into(),
        }),
        age(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldError;

    fn rule(spec: &Value) -> Value {
        json!({"metadata": {"name": "r"}, "spec": spec})
    }

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(FieldError::message).collect()
    }

    #[test]
    fn a_rule_has_a_taint_and_names_that_devices_can_have() {
        let taint = json!({"key": "broken", "effect": "NoExecute"});
        for (spec, expected) in [
            (json!({"taint": taint}), &[][..]),
            (json!({"taint": taint, "deviceSelector": {}}), &[]),
            (
                json!({"taint": taint, "deviceSelector":
                       {"driver": "gpu.example.com", "pool": "a/b", "device": "gpu-0"}}),
                &[],
            ),
            (json!({"taint": {"key": "broken"}}), &["spec.taint.effect: Required value"]),
            (
                json!({"taint": {"key": "broken", "effect": "Never"}}),
                &["spec.taint.effect: Unsupported value: \"Never\": supported values: \
                   \"NoExecute\", \"NoSchedule\", \"None\""],
            ),
            (
                json!({"taint": taint, "deviceSelector": {"pool": ""}}),
                &["spec.deviceSelector.pool: Required value"],
            ),
        ] {
            assert_eq!(told(&RULES.validate_create(&rule(&spec))), expected, "{spec}");
        }
        let kept = rule(&json!({"taint": {"key": "broken", "effect": "Future"}}));
        assert!(RULES.validate_update(&kept, &kept).is_empty(), "what is stored already stays");
    }

    #[test]
    fn a_status_has_at_most_eight_conditions() {
        let condition = |n: usize| {
            json!({"type": format!("c{n}"), "status": "True", "reason": "R", "message": "",
                   "lastTransitionTime": "2030-01-01T00:00:00Z"})
        };
        let with = |count: usize| json!({"status": {"conditions": (0..count).map(condition).collect::<Vec<_>>()}});
        assert!(RULES.validate_status_update(&with(0), &with(8)).is_empty());
        let many = RULES.validate_status_update(&with(0), &with(9));
        assert_eq!(told(&many), ["status.conditions: Too many: 9: must have at most 8 items"]);
    }
}
