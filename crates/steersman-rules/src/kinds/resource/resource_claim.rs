//! `ResourceClaim`: what devices somebody needs, which stays, and which were allocated for whom.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::capacity::check_shares;
use super::claim_spec;
use super::device::{at_most, binding_conditions};
use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, remove, set, text, within, within_existing};
use crate::table::cells::len;
use crate::table::{Column, age};

const RESERVED_MAX: usize = 256;

/// What is said of `ResourceClaim`.
pub(super) const KIND: Kind = Kind {
    plural: "resourceclaims",
    name: "ResourceClaim",
    traits: &[Trait::StatusAlone, Trait::Status, Trait::NoStatusTable],
    rules: &RULES,
    effect: Some(Effect::DeviceClaim),
    columns: || vec![Column::text("State", state), age()],
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |claim| within(claim, "spec", claim_spec::defaults),
    status: Some(|| json!({})),
    check: |claim, old, errors| {
        if old.is_null() {
            claim_spec::check(&claim.at("spec"), errors);
        }
    },
    change: |claim, old, errors| claim.at("spec").unchanged(&old["spec"], errors),
    check_status,
    prepare_status: forget_deallocated,
    ..Rules::NONE
};

fn check_status(claim: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let status = claim.at("status");
    let reserved = status.at("reservedFor");
    at_most(&reserved, RESERVED_MAX, errors);
    let mut seen = HashSet::new();
    for user in status.each("reservedFor") {
        user.require_all(&["resource", "name"], errors);
        let uid = user.at("uid");
        if uid.require(errors) && !seen.insert(uid.text().to_owned()) {
            errors.push(uid.duplicate());
        }
    }
    check_shares(&status, &old["status"], errors);
    let before = &old["status"]["allocation"];
    let after = status.at("allocation");
    if !reserved.is_empty() && after.is_absent() {
        errors.push(reserved.forbidden("may not be specified when `allocated` is not set"));
    }
    if before.is_null() {
        for result in after.each("devices.results") {
            binding_conditions(&result, errors);
        }
    } else if after.is_set() {
        after.unchanged(before, errors);
    }
}

/// Forgets what was said of devices that a claim does not have any more.
fn forget_deallocated(old: &Value, new: &mut Value) {
    let devices = |claim: &Value| -> HashSet<[String; 4]> {
        items(&claim["status"]["allocation"]["devices"]["results"]).iter().map(device).collect()
    };
    let now = devices(new);
    let gone: HashSet<[String; 4]> = devices(old).difference(&now).cloned().collect();
    let kept = items(&new["status"]["devices"]).iter().filter(|it| !gone.contains(&device(it)));
    let kept: Vec<Value> = kept.cloned().collect();
    if kept.len() == items(&new["status"]["devices"]).len() {
        return;
    }
    within_existing(new, "status", |status| match kept.is_empty() {
        true => drop(remove(status, "devices")),
        false => set(status, "devices", kept),
    });
}

/// What tells a device from others.
fn device(entry: &Value) -> [String; 4] {
    ["driver", "pool", "device", "shareID"].map(|key| text(&entry[key]).to_owned())
}

fn state(claim: &Value, _: Timestamp) -> Value {
    let deleted = !claim["metadata"]["deletionTimestamp"].is_null();
    let allocated = !claim["status"]["allocation"].is_null();
    let reserved = allocated && len(&claim["status"]["reservedFor"]) > 0;
    let states = [
        (deleted, "deleted"),
        (!deleted && !allocated, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    let shown: Vec<_> = states.iter().filter(|(holds, _)| *holds).map(|(_, s)| *s).collect();
    shown.join(",").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_device_goes_with_it() {
        let entry =
            |device: &str| json!({"driver": "d.example.com", "pool": "p", "device": device});
        let claim = |allocated: &[&str], told: &[&str]| {
            let results: Vec<Value> = allocated.iter().map(|it| entry(it)).collect();
            let devices: Vec<Value> = told.iter().map(|it| entry(it)).collect();
            json!({"status": {"allocation": {"devices": {"results": results}}, "devices": devices}})
        };
        let old = claim(&["a", "b"], &["a", "b"]);
        for (mut new, left) in [
            (claim(&["a", "b"], &["a", "b"]), json!([entry("a"), entry("b")])),
            (claim(&["b"], &["a", "b"]), json!([entry("b")])),
            (json!({"status": {"devices": [entry("a"), entry("b")]}}), Value::Null),
            (json!({"status": {"devices": [entry("other")]}}), json!([entry("other")])),
        ] {
            RULES.prepare_status_update(&old, &mut new);
            assert_eq!(new["status"]["devices"], left);
        }
    }
}
