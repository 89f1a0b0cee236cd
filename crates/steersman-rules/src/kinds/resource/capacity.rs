//! How much of a device that several claims share each can ask for: what its driver says of that.

use std::collections::HashSet;

use super::device::at_most;
use super::identifier;
use crate::quantity::Quantity;
use crate::rules::at::{At, Errors};

/// So many values can be listed of which one has to be asked for.
const VALUES_MAX: usize = 10;

/// The mistakes in the capacities of a device.
pub(super) fn check(device: &At<'_, '_>, errors: &mut Errors) {
    let is_shared = device.at("allowMultipleAllocations").is_true();
    let capacities = device.at("capacity");
    identifier::entries(
        &capacities,
        |capacity, errors| {
            let policy = capacity.at("requestPolicy");
            if policy.is_set() && !is_shared {
                errors.push(policy.forbidden("allowMultipleAllocations must be true"));
            } else if policy.is_set()
                && let Some(most) = Quantity::of(&capacity.value["value"])
            {
                check_policy(&policy, most, errors);
            }
        },
        errors,
    );
}

fn check_policy(policy: &At<'_, '_>, most: Quantity, errors: &mut Errors) {
    let (values, range) = (policy.at("validValues"), policy.at("validRange"));
    if !values.is_empty() && range.is_set() {
        let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \
                      \"validRange\" at the same time";
        errors.push(policy.forbidden(detail));
        return;
    }
    let default = policy.at("default");
    let amount = Quantity::of(default.value);
    match (values.is_empty(), range.is_set(), amount) {
        (true, false, _) => {}
        (false, _, None) => errors.push(default.required("required when validValues is defined")),
        (_, _, None) => errors.push(default.required("required when validRange is defined")),
        (false, _, Some(default)) => check_values(&values, default, most, errors),
        (true, true, Some(default)) => Range { at: &range, default, most }.check(errors),
    }
}

fn check_values(values: &At<'_, '_>, default: Quantity, most: Quantity, errors: &mut Errors) {
    let all: Vec<Quantity> = values.list().iter().filter_map(Quantity::of).collect();
    for (item, pair) in values.items().skip(1).zip(all.windows(2)) {
        if pair[0] > pair[1] {
            errors.push(item.invalid("values must be sorted in ascending order"));
        }
    }
    let is_looked_into = at_most(values, VALUES_MAX, errors);
    if is_looked_into {
        for (item, value) in values.items().zip(&all) {
            if *value > most {
                let detail = format!("option is larger than capacity value: {most}");
                errors.push(item.invalid(&detail));
            }
        }
        let mut seen = HashSet::new();
        for (item, value) in values.items().zip(&all) {
            if !seen.insert(value.value()) {
                errors.push(item.duplicate_value(value.value().to_string()));
            }
        }
    }
    if !is_looked_into || !all.contains(&default) {
        let detail = "default value is not valid according to the requestPolicy";
        errors.push(values.invalid_value(default.to_string(), detail));
    }
}

/// Between what one can ask for, of at most so much.
struct Range<'a, 'v, 'p> {
    at: &'a At<'v, 'p>,
    default: Quantity,
    most: Quantity,
}

impl Range<'_, '_, '_> {
    fn check(&self, errors: &mut Errors) {
        let Self { at, default, most } = *self;
        let (low, high, step) = (at.at("min"), at.at("max"), at.at("step"));
        let Some(min) = Quantity::of(low.value) else {
            errors.push(low.required("required when validRange is defined"));
            return;
        };
        let mut wrong = |place: &At<'_, '_>, value: Quantity, detail: String| {
            errors.push(place.invalid_value(value.to_string(), &detail));
        };
        if min > most {
            wrong(&low, min, format!("min is larger than capacity value: {most}"));
        }
        if default < min {
            wrong(&low, default, format!("default is less than min: {min}"));
        }
        let max = Quantity::of(high.value);
        if let Some(max) = max {
            if min > max {
                wrong(&high, min, format!("min is larger than max: {max}"));
            }
            if max > most {
                wrong(&high, max, format!("max is larger than capacity value: {most}"));
            }
            if default > max {
                wrong(&high, default, format!("default is more than max: {max}"));
            }
        }
        let Some(by) = Quantity::of(step.value) else { return };
        if let Some(next) = min.checked_add(by).filter(|next| *next > most) {
            wrong(&step, by, format!("one step {next} is larger than capacity value: {most}"));
        }
        for value in std::iter::once(default).chain(max) {
            if !is_on_step(value, min, by) {
                let detail = format!("value is not a multiple of a given step ({by}) from ({min})");
                wrong(&step, value, detail);
            }
        }
    }
}

/// Whether so many steps lead to a value. None do if they are empty: Kubernetes ends there.
fn is_on_step(value: Quantity, from: Quantity, step: Quantity) -> bool {
    let over = i128::from(value.value()) - i128::from(from.value());
    over.checked_rem(i128::from(step.value())) == Some(0)
}

/// The mistakes in what tells the share of a device from others, if it is a share.
pub(super) fn check_share(device: &At<'_, '_>, errors: &mut Errors) {
    let share = device.at("shareID");
    if share.is_absent() {
        return;
    }
    let id = share.text();
    let is_known_length = matches!(id.len(), 32 | 36 | 38 | 45);
    let mut places = id.bytes().enumerate();
    let is_normal = id.len() == 36
        && places.all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    if !is_known_length {
        let detail = format!("error validating uid: invalid UUID length: {}", id.len());
        errors.push(share.invalid(&detail));
    } else if !is_normal {
        let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        errors.push(share.invalid(match is_hex {
            true => {
                "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` \
                 with lowercase hexadecimal characters"
            }
            false => "error validating uid: invalid UUID format",
        }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::field::FieldError;
    use crate::kinds::resource::{resource_claim, resource_slice};

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(FieldError::message).collect()
    }

    fn mistakes(is_shared: bool, policy: &Value) -> Vec<String> {
        let memory = json!({"value": "10Gi", "requestPolicy": policy});
        let device = json!({"name": "a", "allowMultipleAllocations": is_shared,
                            "capacity": {"memory": memory}});
        let slice = json!({"metadata": {"name": "s"}, "spec": {
            "driver": "d.example.com", "nodeName": "n", "devices": [device],
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        }});
        told(&resource_slice::KIND.rules.validate_create(&slice))
    }

    #[test]
    fn what_one_can_ask_for_is_there_and_comes_to_the_default() {
        let at = "spec.devices[0].capacity[memory].requestPolicy";
        let values =
            |default: &str, values: &[&str]| json!({"default": default, "validValues": values});
        let range = |default: &str, range: Value| json!({"default": default, "validRange": range});
        for (policy, expected) in [
            (json!({}), vec![]),
            (values("1Gi", &["1Gi", "2Gi"]), vec![]),
            (range("2Gi", json!({"min": "1Gi", "max": "8Gi", "step": "512Mi"})), vec![]),
            (
                json!({"validValues": ["1Gi"]}),
                vec![format!("{at}.default: Required value: required when validValues is defined")],
            ),
            (
                json!({"validRange": {"min": "1Gi"}}),
                vec![format!("{at}.default: Required value: required when validRange is defined")],
            ),
            (
                json!({"default": "1", "validValues": ["1"], "validRange": {"min": "1"}}),
                vec![format!(
                    "{at}: Forbidden: exactly one policy can be specified, cannot specify \
                     \"validValues\" and \"validRange\" at the same time"
                )],
            ),
            (
                values("3Gi", &["2Gi", "1Gi", "20Gi", "20Gi"]),
                vec![
                    format!(
                        "{at}.validValues[1]: Invalid value: \"1Gi\": values must be sorted in \
                         ascending order"
                    ),
                    format!(
                        "{at}.validValues[2]: Invalid value: \"20Gi\": option is larger than \
                         capacity value: 10Gi"
                    ),
                    format!(
                        "{at}.validValues[3]: Invalid value: \"20Gi\": option is larger than \
                         capacity value: 10Gi"
                    ),
                    format!("{at}.validValues[3]: Duplicate value: \"21474836480\""),
                    format!(
                        "{at}.validValues: Invalid value: \"3Gi\": default value is not valid \
                         according to the requestPolicy"
                    ),
                ],
            ),
            (
                range("1Gi", json!({"min": "2Gi", "max": "20Gi"})),
                vec![
                    format!(
                        "{at}.validRange.min: Invalid value: \"1Gi\": default is less than min: 2Gi"
                    ),
                    format!(
                        "{at}.validRange.max: Invalid value: \"20Gi\": max is larger than \
                         capacity value: 10Gi"
                    ),
                ],
            ),
            (
                range("2Gi", json!({"min": "1Gi", "step": "3Gi"})),
                vec![format!(
                    "{at}.validRange.step: Invalid value: \"2Gi\": value is not a multiple of a \
                     given step (3Gi) from (1Gi)"
                )],
            ),
        ] {
            assert_eq!(mistakes(true, &policy), expected, "{policy}");
        }
        let alone = format!("{at}: Forbidden: allowMultipleAllocations must be true");
        assert_eq!(mistakes(false, &json!({"default": "1Gi"})), [alone]);
    }

    #[test]
    fn shares_are_told_by_uuids() {
        let claim = |share: &Value| {
            let result = json!({"request": "r", "driver": "d.example.com", "pool": "p",
                                "device": "a", "shareID": share});
            json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
                {"name": "r", "exactly": {"deviceClassName": "c"}}]}},
                "status": {"allocation": {"devices": {"results": [result]}}}})
        };
        let at = "status.allocation.devices.results[0].shareID";
        let given = "7c5f0d3a-1a53-4f0b-9a0e-0d2f3c4b5a69";
        for (share, expected) in [
            (json!(null), vec![]),
            (json!(given), vec![]),
            (
                json!("7"),
                vec![format!(
                    "{at}: Invalid value: \"7\": error validating uid: invalid UUID length: 1"
                )],
            ),
            (
                json!(given.to_uppercase()),
                vec![format!(
                    "{at}: Invalid value: {:?}: uid must be in RFC 4122 normalized form, \
                     `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters",
                    given.to_uppercase()
                )],
            ),
        ] {
            let mut old = claim(&share);
            old["status"] = json!({});
            let errors = resource_claim::KIND.rules.validate_status_update(&old, &claim(&share));
            assert_eq!(told(&errors), expected, "{share}");
        }
    }
}
