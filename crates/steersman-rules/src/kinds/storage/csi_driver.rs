//! `CSIDriver`: what a driver for volumes can do, and what it wants to be told.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::metadata;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, is_empty, same, set, text, within};
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

const RULES: Rules = Rules { default: defaults, create, keep, check, change, warn, ..Rules::NONE };

/// Kubernetes has it off, unless somebody asks for it.
const OFF: &str = "preventPodSchedulingIfMissing";

fn create(driver: &mut Value) {
    within(driver, "spec", |spec| drop(spec.as_object_mut().and_then(|spec| spec.remove(OFF))));
}

fn keep(old: &Value, new: &mut Value) {
    if old["spec"][OFF].is_null() {
        create(new);
    }
    count_change(old, new);
}

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

/// Counts a change of the spec. Unlike other kinds that count, a new driver has no number yet.
fn count_change(old: &Value, new: &mut Value) {
    let mut filled = new.clone();
    defaults(&mut filled);
    if !same(&old["spec"], &filled["spec"]) {
        let generation = metadata::number(old, "generation").unwrap_or(0) + 1;
        within(new, "metadata", |metadata| set(metadata, "generation", generation));
    }
}

/// Tokens are safer where drivers get secrets; it is said when they are asked for.
fn warn(driver: &Value, old: Option<&Value>) -> Vec<String> {
    let requests = &driver["spec"]["tokenRequests"];
    let changed = old.is_none_or(|old| !same(&old["spec"]["tokenRequests"], requests));
    if !changed || is_empty(requests) || !driver["spec"]["serviceAccountTokenInSecrets"].is_null() {
        return Vec::new();
    }
    let why = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to \
               true to prevent possible logging of tokens in volume attributes";
    vec![why.to_owned()]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_spec_is_counted() {
        let mut old = json!({"metadata": {"name": "d"}, "spec": {}});
        RULES.fill_in(&mut old);
        let updated = |old: &Value, spec: Value| {
            let mut new = old.clone();
            new["spec"] = spec;
            RULES.prepare_update(old, &mut new);
            new
        };
        // What is left out is filled in, and no change.
        assert_eq!(updated(&old, json!({}))["metadata"]["generation"], Value::Null);
        let once = updated(&old, json!({"podInfoOnMount": true}));
        assert_eq!(once["metadata"]["generation"], 1);
        let twice = updated(&once, json!({"podInfoOnMount": false}));
        assert_eq!(twice["metadata"]["generation"], 2);
    }

    #[test]
    fn tokens_without_secrets_are_warned_of_once() {
        let mut driver = json!({"spec": {"tokenRequests": [{"audience": "a"}]}});
        assert_eq!(RULES.warnings(&driver, None).len(), 1);
        assert_eq!(RULES.warnings(&driver, Some(&json!({"spec": {}}))).len(), 1);
        assert_eq!(RULES.warnings(&driver, Some(&driver)).len(), 0);
        driver["spec"]["serviceAccountTokenInSecrets"] = json!(false);
        assert_eq!(RULES.warnings(&driver, None).len(), 0);
    }
}
