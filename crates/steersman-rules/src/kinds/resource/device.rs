//! What all that speaks of devices shares: how they are selected and configured, and how long lists
//! may be.

use std::collections::HashSet;

use serde_json::Value;

use super::selector;
use crate::kinds::core::persistent_volume::driver_name;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::items;

/// How many entries most lists may have.
pub(super) const LIST_MAX: usize = 32;
const POOL_NAME_MAX: usize = 253;
/// So many conditions can be waited for until a device is ready, and so many say that it never is.
const CONDITIONS_MAX: usize = 4;

/// The mistakes in the name of a pool: one or more names of DNS with slashes between them.
pub(super) fn pool_name(name: &At<'_, '_>, errors: &mut Errors) {
    if !name.require(errors) {
        return;
    }
    if name.text().len() > POOL_NAME_MAX {
        errors.push(name.too_long(POOL_NAME_MAX));
    }
    for part in name.text().split('/') {
        errors.extend(names::invalid(&name.path(), part, names::dns1123_subdomain));
    }
}

/// Complains of a list or map that has too many entries.
pub(super) fn at_most(part: &At<'_, '_>, max: usize, errors: &mut Errors) {
    if part.len() > max {
        errors.push(part.too_many(max));
    }
}

/// The mistakes in what selects devices. What is stored already was looked at when it came.
pub(super) fn selectors(part: &At<'_, '_>, stored: &Value, errors: &mut Errors) {
    let list = part.at("selectors");
    at_most(&list, LIST_MAX, errors);
    let is_stored = !stored.is_null() && list.value == stored;
    for selector in list.items() {
        let cel = selector.at("cel");
        if cel.is_absent() {
            errors.push(cel.required(""));
        } else if !is_stored {
            selector::check(&cel.at("expression"), errors);
        }
    }
}

/// The mistakes in what a driver is told; only the driver understands the parameters.
pub(super) fn configuration(config: &At<'_, '_>, errors: &mut Errors) {
    let opaque = config.at("opaque");
    if opaque.is_absent() {
        errors.push(opaque.required("exactly one of `opaque` is required"));
        return;
    }
    driver_name(&opaque.at("driver"), errors);
    let parameters = opaque.at("parameters");
    match parameters.value {
        Value::Null => errors.push(parameters.required("")),
        Value::Object(_) => {}
        _ => {
            let detail = "must be a valid JSON object";
            errors.push(parameters.invalid_value("<value omitted>", detail));
        }
    }
}

/// The mistakes in the conditions that say whether a device is ready, or never will be.
pub(super) fn binding_conditions(device: &At<'_, '_>, errors: &mut Errors) {
    let (ready, failed) = (device.at("bindingConditions"), device.at("bindingFailureConditions"));
    for list in [&ready, &failed] {
        at_most(list, CONDITIONS_MAX, errors);
        if list.len() <= CONDITIONS_MAX {
            list.items().for_each(|name| name.follows(names::qualified_name, errors));
        }
    }
    for (list, other) in [(&ready, &Value::Null), (&failed, ready.value)] {
        let mut seen = HashSet::new();
        for name in list.items() {
            if !seen.insert(name.text()) {
                errors.push(name.duplicate());
            }
            if items(other).contains(name.value) {
                let detail = "bindingFailureConditions must not overlap with bindingConditions";
                errors.push(name.invalid(detail));
            }
        }
    }
    for (list, other, detail) in [
        (&ready, &failed, "bindingConditions are required to use bindingFailureConditions"),
        (&failed, &ready, "bindingFailureConditions are required to use bindingConditions"),
    ] {
        if list.is_empty() && !other.is_empty() {
            errors.push(list.invalid(detail));
        }
    }
}
