//! Taints of devices, and what claims tolerate of them.

use serde_json::Value;

use super::device::{at_most, named};
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill_text, same};

const TAINTS_MAX: usize = 16;
const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// The mistakes in the taints of a device. What it had already was looked at when it came.
pub(super) fn check_all(device: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let taints = device.at("taints");
    if !same(&old["taints"], taints.value) && at_most(&taints, TAINTS_MAX, errors) {
        taints.items().for_each(|taint| check(&taint, &Value::Null, errors));
    }
}

/// The mistakes in a taint. An effect that it had already stays.
pub(super) fn check(taint: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    named(&taint.at("key"), names::qualified_name, errors);
    taint.at("value").may_follow(names::label_value, errors);
    let effect = taint.at("effect");
    if old["effect"].as_str() != Some(effect.text()) {
        effect.requires_one_of(&EFFECTS, errors);
    }
}

/// Fills in how tolerations compare.
pub(super) fn fill_tolerations(part: &mut Value) {
    each(part, "tolerations", |toleration| fill_text(toleration, "operator", "Equal"));
}

/// The mistakes in what a request tolerates.
pub(super) fn check_tolerations(request: &At<'_, '_>, errors: &mut Errors) {
    for toleration in request.each("tolerations") {
        let [operator, value, effect] =
            ["operator", "value", "effect"].map(|field| toleration.at(field));
        toleration.at("key").may_follow(names::qualified_name, errors);
        match operator.text() {
            "Exists" if value.is_empty() => {}
            "Exists" => errors.push(value.invalid("must be empty for operator `Exists`")),
            "Equal" => value.follows(names::label_value, errors),
            "" => errors.push(operator.required("")),
            _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            effect.one_of(&EFFECTS, errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::field::messages;
    use crate::kinds::resource::resource_slice::mistakes;

    const NO_KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
                          must start and end with an alphanumeric character (e.g. 'MyName',  or \
                          'my.name',  or '123-abc', regex used for validation is \
                          '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const NO_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
                            characters, '-', '_' or '.', and must start and end with an \
                            alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                            regex used for validation is \
                            '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    const EFFECTS_ARE: &str = "supported values: \"NoExecute\", \"NoSchedule\", \"None\"";

    #[test]
    fn a_taint_has_a_key_and_an_effect() {
        let at = "spec.devices[0].taints[0]";
        for (taint, expected) in [
            (json!({"key": "example.com/broken", "value": "yes", "effect": "NoExecute"}), vec![]),
            (json!({"key": "broken", "effect": "None"}), vec![]),
            (
                json!({"key": "a b", "value": "?", "effect": "Never"}),
                vec![
                    format!("{at}.key: Invalid value: \"a b\": {NO_KEY}"),
                    format!("{at}.value: Invalid value: \"?\": {NO_VALUE}"),
                    format!("{at}.effect: Unsupported value: \"Never\": {EFFECTS_ARE}"),
                ],
            ),
            (
                json!({}),
                vec![
                    format!("{at}.key: Invalid value: \"\": name part must be non-empty"),
                    format!("{at}.key: Invalid value: \"\": {NO_KEY}"),
                    format!("{at}.effect: Required value"),
                ],
            ),
        ] {
            let device = json!({"name": "a", "taints": [taint]});
            assert_eq!(mistakes(&json!({"devices": [device]})), expected, "{taint}");
        }
        let many = vec![json!({}); 17];
        let device = json!({"name": "a", "taints": many});
        let too_many = "spec.devices[0].taints: Too many: 17: must have at most 16 items";
        assert_eq!(mistakes(&json!({"devices": [device]})), [too_many]);
    }

    #[test]
    fn a_toleration_says_how_it_compares() {
        for (toleration, expected) in [
            (json!({}), vec![]),
            (json!({"key": "broken", "value": "yes", "effect": "NoSchedule"}), vec![]),
            (json!({"operator": "Exists"}), vec![]),
            (
                json!({"operator": "Exists", "value": "yes"}),
                vec![
                    "tolerations[0].value: Invalid value: \"yes\": must be empty for operator \
                     `Exists`"
                        .to_owned(),
                ],
            ),
            (
                json!({"operator": "Like", "value": "?"}),
                vec![
                    "tolerations[0].operator: Unsupported value: \"Like\": supported values: \
                     \"Equal\", \"Exists\""
                        .to_owned(),
                ],
            ),
            (
                json!({"key": "a b", "value": "?", "effect": "Never"}),
                vec![
                    format!("tolerations[0].key: Invalid value: \"a b\": {NO_KEY}"),
                    format!("tolerations[0].value: Invalid value: \"?\": {NO_VALUE}"),
                    format!("tolerations[0].effect: Unsupported value: \"Never\": {EFFECTS_ARE}"),
                ],
            ),
        ] {
            let mut request = json!({"tolerations": [toleration]});
            fill_tolerations(&mut request);
            let mut errors = Errors::default();
            check_tolerations(&At::root(&request), &mut errors);
            assert_eq!(messages(&errors), expected, "{toleration}");
        }
    }
}
