//! From which nodes devices are reached: exactly one field says so, of the slice or, if the slice
//! wants that, of each of its devices.

use serde_json::{Value, json};

use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;
use crate::rules::label_selector::node_selector;

const OF_SLICE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                        `perDeviceNodeSelection` is required";
const OF_DEVICE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                         `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NOT_OF_DEVICE: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                             `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// The mistakes in what a slice says.
pub(super) fn of_slice(spec: &At<'_, '_>, errors: &mut Errors) {
    let by_name = name(spec, "must be either unset or set to a non-empty string", errors);
    let by_selector = selector(spec, errors);
    if by_selector {
        one_term(&spec.at("nodeSelector.nodeSelectorTerms"), errors);
    }
    let [all, by_device] =
        ["allNodes", "perDeviceNodeSelection"].map(|field| flag(&spec.at(field), errors));
    match &set([
        ("nodeName", by_name),
        ("nodeSelector", by_selector),
        ("allNodes", all),
        ("perDeviceNodeSelection", by_device),
    ])[..]
    {
        [] => errors.push(spec.required(OF_SLICE)),
        [_] => {}
        several => {
            let why = format!("{OF_SLICE}, but multiple fields are set");
            errors.push(spec.invalid_value(shown(several), &why));
        }
    }
}

/// The mistakes in what a device says, of a slice that leaves it to its devices or not.
pub(super) fn of_device(device: &At<'_, '_>, is_up_to_devices: bool, errors: &mut Errors) {
    if !is_up_to_devices {
        let fields = ["nodeName", "nodeSelector", "allNodes"];
        if fields.iter().any(|field| device.at(field).is_set()) {
            errors.push(device.invalid_value(Value::Null, NOT_OF_DEVICE));
        }
        return;
    }
    let by_name = name(device, "must not be empty", errors);
    let by_selector = selector(device, errors);
    let all = flag(&device.at("allNodes"), errors);
    match &set([("nodeName", by_name), ("nodeSelector", by_selector), ("allNodes", all)])[..] {
        [] => errors.push(device.required(OF_DEVICE)),
        [_] => {}
        several => errors.push(device.invalid_value(shown(several), OF_DEVICE)),
    }
}

/// Whether there is the name of a node.
fn name(part: &At<'_, '_>, why_not_empty: &str, errors: &mut Errors) -> bool {
    let name = part.at("nodeName");
    if name.is_set() && name.is_empty() {
        errors.push(name.invalid(why_not_empty));
    }
    name.may_follow(names::dns1123_subdomain, errors);
    !name.is_empty()
}

/// Whether there is a selector of nodes.
fn selector(part: &At<'_, '_>, errors: &mut Errors) -> bool {
    let selector = part.at("nodeSelector");
    if selector.is_set() {
        node_selector(&selector, errors);
    }
    selector.is_set()
}

/// Complains unless there is one term: selectors of several slices can be joined then.
fn one_term(terms: &At<'_, '_>, errors: &mut Errors) {
    if terms.len() != 1 {
        let why = "must have exactly one node selector term";
        errors.push(terms.invalid_value(in_go(terms.value), why));
    }
}

/// Terms as Kubernetes shows them: with the names that their fields have in Go.
fn in_go(terms: &Value) -> Value {
    let requirement = |it: &Value| {
        let [key, operator] = ["key", "operator"].map(|field| text(&it[field]));
        json!({"Key": key, "Operator": operator, "Values": it["values"]})
    };
    let requirements = |list: &Value| -> Option<Vec<Value>> {
        list.as_array().map(|list| list.iter().map(requirement).collect())
    };
    let term = |it: &Value| {
        let [labels, fields] =
            ["matchExpressions", "matchFields"].map(|field| requirements(&it[field]));
        json!({"MatchExpressions": labels, "MatchFields": fields})
    };
    terms.as_array().map(|terms| terms.iter().map(term).collect::<Vec<_>>()).into()
}

/// Whether a field is set to true; there is no reason to set it to false.
fn flag(field: &At<'_, '_>, errors: &mut Errors) -> bool {
    if field.value.as_bool() == Some(false) {
        errors.push(field.invalid("must be either unset or set to true"));
    }
    field.is_true()
}

/// The fields that are set, as they are shown.
fn set<const N: usize>(fields: [(&str, bool); N]) -> Vec<String> {
    let set = fields.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(field, _)| format!("`{field}`")).collect()
}

fn shown(fields: &[String]) -> String {
    format!("{{{}}}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::resource::resource_slice::mistakes;

    fn on(key: &str) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": "Exists"}]})
    }

    fn selector_of(terms: &[Value]) -> Value {
        json!({"nodeSelectorTerms": terms})
    }

    #[test]
    fn exactly_one_field_of_a_slice_says_where_its_devices_are() {
        let true_or_unset = |field: &str| {
            format!("spec.{field}: Invalid value: false: must be either unset or set to true")
        };
        let none = format!("spec: Required value: {OF_SLICE}");
        let shown = "{\"MatchExpressions\":[{\"Key\":\"a\",\"Operator\":\"Exists\",\"Values\":null}],\
                     \"MatchFields\":null}";
        for (spec, expected) in [
            (json!({"nodeName": "n"}), vec![]),
            (json!({"nodeName": null, "allNodes": true}), vec![]),
            (json!({"nodeName": null, "nodeSelector": selector_of(&[on("a")])}), vec![]),
            (json!({"nodeName": null}), vec![none.clone()]),
            (
                json!({"nodeName": ""}),
                vec![
                    "spec.nodeName: Invalid value: \"\": must be either unset or set to a \
                     non-empty string"
                        .to_owned(),
                    none.clone(),
                ],
            ),
            (
                json!({"allNodes": false, "perDeviceNodeSelection": false}),
                vec![true_or_unset("allNodes"), true_or_unset("perDeviceNodeSelection")],
            ),
            (
                json!({"nodeName": "n", "allNodes": true}),
                vec![format!(
                    "spec: Invalid value: \"{{`nodeName`, `allNodes`}}\": {OF_SLICE}, but multiple \
                     fields are set"
                )],
            ),
            (
                json!({"nodeName": null, "nodeSelector": selector_of(&[on("a"), on("a")])}),
                vec![format!(
                    "spec.nodeSelector.nodeSelectorTerms: Invalid value: [{shown},{shown}]: must \
                     have exactly one node selector term"
                )],
            ),
        ] {
            assert_eq!(mistakes(&spec), expected, "{spec}");
        }
    }

    #[test]
    fn devices_say_where_they_are_if_their_slice_wants_it() {
        let at = "spec.devices[0]";
        let told = |is_up_to_devices: bool, says: &Value| {
            let mut device = says.clone();
            device["name"] = "a".into();
            let mut spec = match is_up_to_devices {
                true => json!({"nodeName": null, "perDeviceNodeSelection": true}),
                false => json!({}),
            };
            spec["devices"] = json!([device]);
            mistakes(&spec)
        };
        let not_here = format!("{at}: Invalid value: null: {NOT_OF_DEVICE}");
        let none = format!("{at}: Required value: {OF_DEVICE}");
        for (is_up_to_devices, says, expected) in [
            (false, json!({}), vec![]),
            (false, json!({"allNodes": false}), vec![not_here.clone()]),
            (false, json!({"nodeName": "n"}), vec![not_here]),
            (true, json!({"nodeName": "n"}), vec![]),
            (true, json!({"nodeSelector": selector_of(&[on("a"), on("b")])}), vec![]),
            (true, json!({}), vec![none.clone()]),
            (
                true,
                json!({"nodeName": "", "allNodes": false}),
                vec![
                    format!("{at}.nodeName: Invalid value: \"\": must not be empty"),
                    format!(
                        "{at}.allNodes: Invalid value: false: must be either unset or set to true"
                    ),
                    none,
                ],
            ),
            (
                true,
                json!({"nodeName": "n", "allNodes": true}),
                vec![format!("{at}: Invalid value: \"{{`nodeName`, `allNodes`}}\": {OF_DEVICE}")],
            ),
        ] {
            assert_eq!(told(is_up_to_devices, &says), expected, "{says}");
        }
    }
}
