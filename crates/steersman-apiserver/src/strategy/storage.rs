//! Volumes, claims and classes.

use serde_json::{Value, json};

use super::document::{
    fill, fill_text, immutable, is_empty, items, one_of, remove, required, set, text, within,
};
use super::simple::Simple;
use crate::field::FieldError;

const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// The strategies of this family.
pub(super) fn strategy(kind: &str) -> Simple {
    match kind {
        "PersistentVolume" => Simple {
            default: |volume| {
                within(volume, "spec", |spec| {
                    fill_text(spec, "persistentVolumeReclaimPolicy", "Retain");
                    fill(spec, "volumeMode", "Filesystem");
                });
            },
            status: Some(|| json!({"phase": "Pending"})),
            validate: volume,
            ..Simple::NOTHING
        },
        "PersistentVolumeClaim" => Simple {
            default: |claim| {
                within(claim, "spec", |spec| fill(spec, "volumeMode", "Filesystem"));
            },
            status: Some(|| json!({"phase": "Pending"})),
            validate: claim,
            validate_change: claim_change,
        },
        "StorageClass" => Simple {
            default: |class| {
                fill(class, "reclaimPolicy", "Delete");
                fill(class, "volumeBindingMode", "Immediate");
            },
            validate: |class| required(class, "", "provisioner").into_iter().collect(),
            validate_change: class_change,
            ..Simple::NOTHING
        },
        "CSIDriver" => Simple { default: driver, ..Simple::NOTHING },
        _ => Simple::CLEARED,
    }
}

fn driver(driver: &mut Value) {
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

fn volume(volume: &Value) -> Vec<FieldError> {
    let spec = &volume["spec"];
    let mut errors = access_modes(spec);
    if is_empty(&spec["capacity"]) {
        errors.push(FieldError::required("spec.capacity", ""));
    }
    let policies = ["Delete", "Recycle", "Retain"];
    errors.extend(one_of(spec, "spec", "persistentVolumeReclaimPolicy", &policies));
    errors.extend(one_of(spec, "spec", "volumeMode", &["Block", "Filesystem"]));
    errors
}

fn claim(claim: &Value) -> Vec<FieldError> {
    let spec = &claim["spec"];
    let mut errors = access_modes(spec);
    if spec["resources"]["requests"]["storage"].is_null() {
        errors.push(FieldError::required("spec.resources[storage]", ""));
    }
    errors.extend(one_of(spec, "spec", "volumeMode", &["Block", "Filesystem"]));
    errors
}

fn access_modes(spec: &Value) -> Vec<FieldError> {
    const FIELD: &str = "spec.accessModes";
    let modes = items(&spec["accessModes"]);
    if modes.is_empty() {
        return vec![FieldError::required(FIELD, "at least 1 access mode is required")];
    }
    let unknown = modes.iter().filter(|mode| !ACCESS_MODES.contains(&text(mode)));
    unknown.map(|mode| FieldError::not_supported(FIELD, mode, ACCESS_MODES)).collect()
}

/// A claim may be bound, and may grow; the rest stands.
fn claim_change(old: &Value, new: &Value) -> Vec<FieldError> {
    let frozen = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        for key in ["resources", "volumeAttributesClassName"] {
            remove(&mut spec, key);
        }
        if text(&old["spec"]["volumeName"]).is_empty() {
            remove(&mut spec, "volumeName");
        }
        spec
    };
    if frozen(old) == frozen(new) {
        return Vec::new();
    }
    let detail = "spec is immutable after creation except resources.requests and \
                  volumeAttributesClassName for bound claims";
    vec![FieldError::forbidden("spec", detail)]
}

fn class_change(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["parameters", "provisioner", "reclaimPolicy"] {
        if old[key] != new[key] {
            let detail = format!("updates to {key} are forbidden.");
            errors.push(FieldError::forbidden(key, &detail));
        }
    }
    errors.extend(immutable(old, new, "", "volumeBindingMode"));
    errors
}
