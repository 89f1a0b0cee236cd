//! What classes of storage share: whose they are and what they tell that driver, which stays.

use serde_json::Value;

use crate::names;
use crate::rules::at::{At, Errors};

const PARAMETERS_MAX: usize = 512;

/// How many bytes a map that a driver understands may take.
pub(super) const PARAMETERS_MAX_BYTES: usize = 256 * 1024;

/// The mistakes in the name of who makes volumes; it may have mixed case.
pub(super) fn provisioner(name: &At<'_, '_>, errors: &mut Errors) {
    if name.require(errors) {
        let lower = name.text().to_lowercase();
        errors.extend(names::invalid(&name.path(), &lower, names::qualified_name));
    }
}

/// The mistakes in the size of the parameters of a class.
pub(super) fn parameters(class: &At<'_, '_>, errors: &mut Errors) {
    let all = class.at("parameters");
    if all.len() > PARAMETERS_MAX {
        errors.push(all.too_long(PARAMETERS_MAX));
        return;
    }
    let mut size = 0;
    for (key, value) in all.entries() {
        if key.is_empty() {
            errors.push(all.invalid_value("", "field can not be empty."));
        }
        size += key.len() + value.text().len();
    }
    if size > PARAMETERS_MAX_BYTES {
        errors.push(all.too_long(PARAMETERS_MAX_BYTES));
    }
}

/// Complains of each of these fields that has changed.
pub(super) fn forbid_changes(class: &At<'_, '_>, old: &Value, keys: &[&str], errors: &mut Errors) {
    for key in keys {
        let part = class.at(key);
        if *part.value != old[*key] {
            errors.push(part.forbidden(&format!("updates to {key} are forbidden.")));
        }
    }
}
