//! `CSIDriver`: what a driver for volumes can do, and what it wants to be told.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, is_empty, set, text, within};
use crate::table::cells::{joined, or_none, texts};
use crate::table::{Cell, Column, age};

const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// What is said of `CSIDriver`.
pub(super) const KIND: Kind = Kind {
    plural: "csidrivers",
    name: "CSIDriver",
    traits: &[Trait::VersionedUpdate],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules { default: defaults, check, change, ..Rules::NONE };

fn defaults(driver: &mut Value) {
    within(driver, "spec", |spec| {
        fill(spec, "attachRequired", true);
        for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
            fill(spec, key, false);
        }
        fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if is_empty(&spec["volumeLifecycleModes"]) {
            set(spec, "volumeLifecycleModes", json!(["Persistent"]));
        }
    });
}

fn check(driver: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = driver.at("spec");
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    spec.at("fsGroupPolicy").one_of(&policies, errors);
    check_token_requests(&spec, errors);
    let modes = ["Persistent", "Ephemeral"];
    let list = spec.at("volumeLifecycleModes");
    for mode in list.list().iter().filter(|mode| !modes.contains(&text(mode))) {
        errors.push(list.with(mode).not_supported(&modes));
    }
    let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.number_or_zero() < 10 {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let secrets = spec.at("serviceAccountTokenInSecrets");
    if secrets.is_set() && spec.at("tokenRequests").is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(secrets.invalid(detail));
    }
}

fn check_token_requests(spec: &At<'_, '_>, errors: &mut Errors) {
    let mut audiences = HashSet::new();
    for request in spec.each("tokenRequests") {
        let audience = request.at("audience");
        let seconds = request.at("expirationSeconds");
        if !audiences.insert(audience.text().to_owned()) {
            errors.push(audience.duplicate());
        } else if seconds.is_set() {
            if seconds.number_or_zero() < TOKEN_SECONDS_MIN {
                errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
            }
            if seconds.number_or_zero() > TOKEN_SECONDS_MAX {
                let detail = "may not specify a duration larger than 2^32 seconds";
                errors.push(seconds.invalid(detail));
            }
        }
    }
}

fn change(driver: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let new = &driver.value["spec"];
    let old = &old["spec"];
    // The path of the first is spelled as Kubernetes spells it.
    for (key, shown) in [
        ("attachRequired", "spec.attachedRequired"),
        ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
    ] {
        if new[key] != old[key] {
            errors.push(FieldError::invalid(shown, &new[key], "field is immutable"));
        }
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column {
            value: Cell::Switch("spec.attachRequired", true),
            ..Column::switch("AttachRequired", "spec.attachRequired")
        },
        Column::switch("PodInfoOnMount", "spec.podInfoOnMount"),
        Column::switch("StorageCapacity", "spec.storageCapacity"),
        Column::text("TokenRequests", |driver, _| match &driver["spec"]["tokenRequests"] {
            Value::Null => "<unset>".into(),
            requests => joined(requests, "audience").into(),
        }),
        Column::switch("RequiresRepublish", "spec.requiresRepublish"),
        Column::text("Modes", |driver, _| or_none(&texts(&driver["spec"]["volumeLifecycleModes"]))),
        age(),
    ]
}
