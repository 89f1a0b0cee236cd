//! How much of the capacities of a device a request takes, in the portions that the driver allows.
//!
//! Who says nothing about a capacity takes what the driver says such requests take, or all of it. Who
//! says how much takes that much, rounded up to what the driver gives out, such as whole gibibytes.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceCapacity,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use steersman_values::Quantity;

use crate::plugins::consumed::Consumed;

/// How much is asked for, by the names of capacities.
pub(super) type Amounts = BTreeMap<String, Amount>;

/// What a request takes of a device; none if it asks for what the device does not have, or in another
/// portion than its driver gives out.
pub(super) fn portion(device: &Device, asked: Option<&Amounts>) -> Option<Consumed> {
    let capacities = device.capacity.as_ref();
    let has = |name: &String| capacities.is_some_and(|all| all.contains_key(name));
    if !asked.into_iter().flatten().all(|(name, _)| has(name)) {
        return None;
    }
    let mut portion = Consumed::default();
    for (name, capacity) in capacities.into_iter().flatten() {
        let wanted = asked.and_then(|asked| asked.get(name));
        portion.set(name, granted(wanted, capacity)?);
    }
    Some(portion)
}

/// Whether a device has as much left as is wanted, where this is taken of it, and that is about to be.
pub(super) fn has_room(
    device: &Device,
    held: &Consumed,
    others: &[Consumed],
    wanted: &Consumed,
) -> bool {
    device.capacity.iter().flatten().all(|(name, capacity)| {
        let mut all = others.iter().chain([held]).map(|consumed| consumed.get(name));
        let sum = all.try_fold(wanted.get(name), Quantity::checked_add);
        sum.is_some_and(|sum| amount(&capacity.value).is_some_and(|most| sum <= most))
    })
}

/// What is taken of a capacity of which so much is wanted; none if its driver does not allow that.
fn granted(wanted: Option<&Amount>, capacity: &DeviceCapacity) -> Option<Quantity> {
    let policy = capacity.request_policy.as_ref();
    let default = policy.and_then(|policy| policy.default.as_ref());
    let granted = match (wanted.map(amount), policy) {
        (None, _) => amount(default.unwrap_or(&capacity.value))?,
        (Some(wanted), None) => wanted?,
        (Some(wanted), Some(policy)) => rounded_up(wanted?, policy),
    };
    let is_default = || default.and_then(amount) == Some(granted);
    let is_allowed = policy.is_none_or(|policy| is_default() || allows(policy, granted));
    is_allowed.then_some(granted)
}

/// The least that is given out to who wants this much; what is wanted if that is more than anything.
fn rounded_up(wanted: Quantity, policy: &CapacityRequestPolicy) -> Quantity {
    if let Some(range) = &policy.valid_range
        && let Some(min) = amount(&range.min)
    {
        if wanted < min {
            return min;
        }
        let low = i128::from(min.value());
        let over = i128::from(wanted.value()) - low;
        let steps = step(range).and_then(|step| whole_units(low + (over + step - 1) / step * step));
        return steps.unwrap_or(wanted);
    }
    let mut values = policy.valid_values.iter().flatten().filter_map(amount);
    values.find(|value| wanted <= *value).unwrap_or(wanted)
}

/// Whether so much is given out.
fn allows(policy: &CapacityRequestPolicy, granted: Quantity) -> bool {
    if let Some(range) = &policy.valid_range {
        let is_too_much = range.max.as_ref().and_then(amount).is_some_and(|max| granted > max);
        let min = amount(&range.min).unwrap_or(Quantity::ZERO).value();
        let over = i128::from(granted.value()) - i128::from(min);
        return !is_too_much && step(range).is_none_or(|step| over % step == 0);
    }
    match policy.valid_values.as_deref() {
        None | Some([]) => true,
        Some(values) => values.iter().filter_map(amount).any(|value| value == granted),
    }
}

fn step(range: &CapacityRequestPolicyRange) -> Option<i128> {
    let step = amount(range.step.as_ref()?)?.value();
    (step > 0).then(|| step.into())
}

/// So many units, written as bytes are.
fn whole_units(number: i128) -> Option<Quantity> {
    let kibi = Quantity::parse(&format!("{}Ki", number / 1024)).ok()?;
    kibi.checked_add(Quantity::units(usize::try_from(number % 1024).ok()?))
}

fn amount(amount: &Amount) -> Option<Quantity> {
    Quantity::parse(&amount.0).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::object;

    /// What is taken of 10Gi under a policy by who wants this much.
    fn taken(policy: &Value, wanted: Option<&str>) -> Option<String> {
        let capacity = json!({"value": "10Gi", "requestPolicy": policy});
        let device: Device = object(json!({"name": "d", "capacity": {"memory": capacity}}));
        let asked: Option<Amounts> =
            wanted.map(|wanted| object(json!({"memory": wanted.to_owned()})));
        portion(&device, asked.as_ref()).map(|portion| portion.get("memory").to_string())
    }

    #[test]
    fn requests_take_what_they_want_in_the_portions_that_are_given_out() {
        let none = json!(null);
        let free = json!({"default": "1Gi"});
        let values = json!({"default": "2Gi", "validValues": ["1Gi", "2Gi", "4Gi"]});
        let range = json!({"default": "2Gi", "validRange": {"min": "1Gi", "max": "8Gi"}});
        let steps = json!({"default": "2Gi",
                           "validRange": {"min": "1Gi", "step": "512Mi", "max": "8Gi"}});
        for (policy, wanted, expected) in [
            (&none, None, Some("10Gi")),
            (&none, Some("3Gi"), Some("3Gi")),
            (&free, None, Some("1Gi")),
            (&free, Some("3"), Some("3")),
            (&values, None, Some("2Gi")),
            (&values, Some("1500Mi"), Some("2Gi")),
            (&values, Some("5Gi"), None),
            (&range, Some("1Mi"), Some("1Gi")),
            (&range, Some("1500Mi"), Some("1500Mi")),
            (&range, Some("9Gi"), None),
            (&steps, Some("1Gi"), Some("1Gi")),
            (&steps, Some("1025Mi"), Some("1536Mi")),
            (&steps, Some("8Gi"), Some("8Gi")),
            (&steps, Some("8193Mi"), None),
        ] {
            assert_eq!(taken(policy, wanted).as_deref(), expected, "{policy} {wanted:?}");
        }
    }

    #[test]
    fn what_a_device_does_not_have_cannot_be_asked_of_it() {
        let device: Device = object(json!({"name": "d", "capacity": {"memory": {"value": "1"}}}));
        let asked: Amounts = object(json!({"cores": "1"}));
        assert_eq!(portion(&device, Some(&asked)), None);
        assert!(portion(&object(json!({"name": "d"})), Some(&asked)).is_none());
        assert_eq!(portion(&object(json!({"name": "d"})), None), Some(Consumed::default()));
    }
}
