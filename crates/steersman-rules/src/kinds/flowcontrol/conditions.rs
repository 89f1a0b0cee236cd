//! The conditions that both kinds have; their type is older than the general one, and looser.

use std::collections::HashSet;

use serde_json::Value;

use crate::rules::at::{At, Errors};

/// The mistakes in the status: each condition has a type, and none comes twice.
pub(super) fn check_status(object: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let status = object.at("status");
    let mut seen = HashSet::new();
    for condition in status.each("conditions") {
        let kind = condition.at("type");
        if !seen.insert(kind.text().to_owned()) {
            errors.push(kind.duplicate());
        }
        kind.require(errors);
    }
}
