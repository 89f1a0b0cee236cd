//! What all that speaks of devices shares: how they are named and configured, and how long lists may
//! be.

use std::collections::HashSet;

use serde_json::Value;

use crate::kinds::core::persistent_volume::driver_name;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, same};

/// How many entries most lists may have.
pub(super) const LIST_MAX: usize = 32;
const POOL_NAME_MAX: usize = 253;
/// How many bytes of JSON may be meant for a driver alone.
const DATA_MAX: usize = 10 * 1024;
/// So many conditions can be waited for until a device is ready, and so many say that it never is.
const CONDITIONS_MAX: usize = 4;

/// The mistakes in a name by this rule; one that is absent is empty.
pub(super) fn named(name: &At<'_, '_>, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let mistakes = rule(name.text());
    errors.extend(mistakes.iter().map(|why| name.invalid_value(name.text(), why)));
}

/// The mistakes in the name of a pool: one or more names of DNS with slashes between them.
pub(super) fn pool_name(name: &At<'_, '_>, errors: &mut Errors) {
    if !name.require(errors) {
        return;
    }
    if name.text().len() > POOL_NAME_MAX {
        errors.push(name.too_long(POOL_NAME_MAX));
    }
    for part in name.text().split('/') {
        let mistakes = names::dns1123_subdomain(part);
        errors.extend(mistakes.iter().map(|why| name.invalid_value(part, why)));
    }
}

/// Complains of a list or map that has too many entries; whether it has not. Kubernetes does not look
/// into one that has.
pub(super) fn at_most(part: &At<'_, '_>, max: usize, errors: &mut Errors) -> bool {
    let fits = part.len() <= max;
    if !fits {
        errors.push(part.too_many(max));
    }
    fits
}

/// Complains of each item of a list that is called as an earlier one.
pub(super) fn unique(list: &At<'_, '_>, name: impl Fn(&Value) -> &str, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for item in list.items() {
        let name = name(item.value);
        if !seen.insert(name) {
            errors.push(item.duplicate_value(name));
        }
    }
}

/// Complains of a change of what never changes, and shows it as one of an internal type. What was
/// stored before a default was known is as if it had it.
pub(super) fn fixed(
    part: &At<'_, '_>,
    kind: &str,
    old: &Value,
    fill: fn(&mut Value),
    errors: &mut Errors,
) {
    if !same(old, part.value) {
        let mut old = old.clone();
        fill(&mut old);
        part.unchanged_as(kind, &old, errors);
    }
}

/// The mistakes in what a driver is told. What is stored already may be longer than it may be now.
pub(super) fn configuration(config: &At<'_, '_>, is_stored: bool, errors: &mut Errors) {
    let opaque = config.at("opaque");
    if opaque.is_absent() {
        errors.push(opaque.required(""));
    } else {
        driver_name(&opaque.at("driver"), errors);
        data(&opaque.at("parameters"), is_stored, errors);
    }
}

/// The mistakes in an object that only a driver understands.
pub(super) fn data(data: &At<'_, '_>, is_stored: bool, errors: &mut Errors) {
    if data.is_absent() {
        errors.push(data.required(""));
    } else if !is_stored && data.value.to_string().len() > DATA_MAX {
        errors.push(data.too_long(DATA_MAX));
    } else if !data.value.is_object() {
        errors.push(data.invalid_value("<value omitted>", "must be a valid JSON object"));
    }
}

/// The mistakes in the conditions that say whether a device is ready, or never will be.
pub(super) fn binding_conditions(device: &At<'_, '_>, errors: &mut Errors) {
    let (ready, failed) = (device.at("bindingConditions"), device.at("bindingFailureConditions"));
    for list in [&ready, &failed] {
        if at_most(list, CONDITIONS_MAX, errors) {
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
