//! `ResourceClaim`: what devices somebody needs, which stays, and which were allocated for whom.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::device::{at_most, fixed, unique};
use super::{allocation, claim_spec, device_status};
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
    change: |claim, old, errors| {
        let kind = "ResourceClaimSpec";
        fixed(&claim.at("spec"), kind, &old["spec"], claim_spec::defaults, errors);
    },
    check_status,
    prepare_status: |old, claim| {
        forget_deallocated(old, claim);
        within_existing(claim, "status", |status| {
            within_existing(status, "allocation", allocation::defaults);
        });
    },
    ..Rules::NONE
};

fn check_status(claim: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let status = claim.at("status");
    let before = &old["status"];
    check_users(&status.at("reservedFor"), errors);
    device_status::check(&status, errors);
    check_reservation(claim, before, errors);
    let after = status.at("allocation");
    if after.is_absent() {
        return;
    }
    if before["allocation"].is_null() {
        let requests = claim_spec::request_names(&claim.value["spec"]["devices"]);
        allocation::check(&after, &requests, errors);
    } else {
        let kind = "*AllocationResult";
        fixed(&after, kind, &before["allocation"], allocation::defaults, errors);
    }
}

/// The mistakes in who uses a claim.
fn check_users(users: &At<'_, '_>, errors: &mut Errors) {
    if at_most(users, RESERVED_MAX, errors) {
        users.items().for_each(|user| user.require_all(&["resource", "name", "uid"], errors));
        unique(users, |user| text(&user["uid"]), errors);
    }
}

/// Complains if a claim is used that cannot be: one that has no devices, or that is to go.
fn check_reservation(claim: &At<'_, '_>, before: &Value, errors: &mut Errors) {
    let users = claim.at("status.reservedFor");
    if users.is_empty() {
        return;
    }
    if claim.at("status.allocation").is_absent() {
        errors.push(users.forbidden("may not be specified when `allocated` is not set"));
    } else if claim.at("metadata.deletionTimestamp").is_set() {
        let known: HashSet<_> = items(&before["reservedFor"]).iter().map(user).collect();
        if users.list().iter().any(|it| !known.contains(&user(it))) {
            let why = "new entries may not be added while `deallocationRequested` or \
                       `deletionTimestamp` are set";
            errors.push(users.forbidden(why));
        }
    }
}

/// What tells a user of a claim from others.
fn user(reference: &Value) -> [&str; 4] {
    ["apiGroup", "resource", "name", "uid"].map(|field| text(&reference[field]))
}

/// Forgets what was said of devices that a claim does not have any more.
fn forget_deallocated(old: &Value, new: &mut Value) {
    let kept = still_told(&old["status"], &new["status"]);
    if kept.len() == items(&new["status"]["devices"]).len() {
        return;
    }
    within_existing(new, "status", |status| match kept.is_empty() {
        true => drop(remove(status, "devices")),
        false => set(status, "devices", kept),
    });
}

/// What is said of devices but for those that are gone.
fn still_told(old: &Value, new: &Value) -> Vec<Value> {
    let told = items(&new["devices"]);
    if told.is_empty() {
        return Vec::new();
    }
    let (had, has) = (device_status::allocated(old), device_status::allocated(new));
    let stays = |it: &&Value| {
        let id = device_status::id(it);
        has.contains(&id) || !had.contains(&id)
    };
    told.iter().filter(stays).cloned().collect()
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

/// What is wrong with going from one status to another, of a claim with the request `gpu`.
#[cfg(test)]
pub(super) fn status_mistakes(old: &Value, new: &Value) -> Vec<String> {
    let [old, new] = [old, new].map(tests::with_status);
    crate::field::messages(&RULES.validate_status_update(&old, &new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::messages;

    pub(super) fn with_status(status: &Value) -> Value {
        let request = json!({"name": "gpu", "exactly": {"deviceClassName": "c"}});
        json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}},
               "status": status})
    }

    fn used_by(uids: &[&str]) -> Value {
        let user = |uid: &&str| json!({"resource": "pods", "name": "p", "uid": uid});
        let users: Vec<Value> = uids.iter().map(user).collect();
        json!({"allocation": {}, "reservedFor": users})
    }

    #[test]
    fn a_claim_is_used_by_who_can_be_told_from_others() {
        let at = "status.reservedFor";
        let nobody = json!({"allocation": {}, "reservedFor": [{}, {}]});
        let no_devices = json!({"reservedFor": used_by(&["a"])["reservedFor"]});
        let missing = |number: usize| {
            ["resource", "name", "uid"].map(|it| format!("{at}[{number}].{it}: Required value"))
        };
        let mut unnamed = [missing(0), missing(1)].concat();
        unnamed.push(format!("{at}[1]: Duplicate value: \"\""));
        for (status, expected) in [
            (used_by(&["a", "b"]), vec![]),
            (nobody, unnamed),
            (used_by(&["a", "a"]), vec![format!("{at}[1]: Duplicate value: \"a\"")]),
            (
                no_devices,
                vec![format!("{at}: Forbidden: may not be specified when `allocated` is not set")],
            ),
            (
                used_by(&[""; 257]),
                vec![format!("{at}: Too many: 257: must have at most 256 items")],
            ),
        ] {
            assert_eq!(status_mistakes(&json!({}), &status), expected);
        }
    }

    #[test]
    fn nobody_starts_to_use_a_claim_that_is_to_go() {
        let told = |old: &[&str], new: &[&str]| {
            let [old, mut new] = [old, new].map(|uids| with_status(&used_by(uids)));
            new["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into();
            messages(&RULES.validate_status_update(&old, &new))
        };
        assert!(told(&["a", "b"], &["b"]).is_empty());
        let why = "status.reservedFor: Forbidden: new entries may not be added while \
                   `deallocationRequested` or `deletionTimestamp` are set";
        assert_eq!(told(&["a"], &["a", "b"]), [why]);
    }

    #[test]
    fn what_was_given_stays_and_says_how_tolerations_compare() {
        let results = json!([{"request": "gpu", "driver": "d.example.com", "pool": "p",
                              "device": "a", "tolerations": [{"key": "broken"}]}]);
        let allocation = json!({"devices": {"results": results}});
        let stored = with_status(&json!({"allocation": allocation}));
        let mut new = stored.clone();
        RULES.prepare_status_update(&stored, &mut new);
        let pointer = "/status/allocation/devices/results/0/tolerations/0/operator";
        assert_eq!(new.pointer(pointer), Some(&json!("Equal")));
        assert!(RULES.validate_status_update(&stored, &new).is_empty());
        new["status"]["allocation"]["devices"]["results"][0]["device"] = "b".into();
        let changed = messages(&RULES.validate_status_update(&stored, &new));
        assert_eq!(changed.len(), 1);
        let shown = r#"{"Devices":{"Results":[{"Request":"gpu","Driver":"d.example.com",""#;
        assert!(changed[0].contains(shown), "{changed:?}");
        assert!(changed[0].ends_with("field is immutable"), "{changed:?}");
    }

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
