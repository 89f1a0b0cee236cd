//! Persistent volumes: what a volume offers, and that its source stays. [`source`] has the rules
//! of the sources, of which a volume has exactly one.

pub(super) mod columns;
mod source;
#[cfg(test)]
mod tests;
mod warnings;

pub(in crate::kinds) use self::source::{HOST_PATH_TYPES, driver_name};

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::quantity::Quantity;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{
    fill, fill_text, items, remove, same, set, text, within, within_existing,
};
use crate::rules::internal;
use crate::rules::label_selector::node_selector;

/// What is said of `PersistentVolume`.
pub(super) const KIND: Kind = Kind {
    plural: "persistentvolumes",
    name: "PersistentVolume",
    short_names: &["pv"],
    traits: &[Trait::Status],
    rules: &RULES,
    effect: Some(Effect::PersistentVolume),
    columns: columns::columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

/// The ways to use a volume.
const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// What `spec.mountOptions` was before.
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

/// The two forms of a volume.
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// Labels of nodes, by the names that they had and have.
const NEWER_LABELS: &[(&str, &str)] = &[
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

const RULES: Rules = Rules {
    default: |volume| {
        within(volume, "spec", |spec| {
            fill_text(spec, "persistentVolumeReclaimPolicy", "Retain");
            fill(spec, "volumeMode", "Filesystem");
            source::defaults(spec);
        });
    },
    status: Some(|| json!({"phase": "Pending"})),
    check: |volume, _, errors| {
        check(volume, errors);
        mount_options(volume, errors);
    },
    // The options are looked at once only.
    check_existing: Some(|volume, _, errors| check(volume, errors)),
    change,
    prepare_status: |_, volume| {
        within(volume, "status", |status| fill_text(status, "phase", "Pending"));
    },
    warn: |volume, _| warnings::of(&At::root(volume)),
    ..Rules::NONE
};

fn check(volume: &At<'_, '_>, errors: &mut Errors) {
    let spec = &volume.at("spec");
    access_modes(spec, errors);
    capacity(spec, errors);
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        policy.requires_one_of(&["Delete", "Recycle", "Retain"], errors);
    }
    let affinity = spec.at("nodeAffinity");
    if affinity.is_set() {
        let required = affinity.at("required");
        if required.is_absent() {
            errors.push(required.required("must specify required node constraints"));
        } else {
            node_selector(&required, errors);
        }
    }
    source::check(spec, Some(volume.at("metadata.name").text()), errors);
    recycles_root(spec, errors);
    let class = spec.at("storageClassName");
    if !class.is_empty() {
        class.follows(names::dns1123_subdomain, errors);
    }
    spec.at("volumeMode").one_of(VOLUME_MODES, errors);
    let attributes = spec.at("volumeAttributesClassName");
    if attributes.is_set() {
        if attributes.require_because("an empty string is disallowed", errors) {
            attributes.follows(names::dns1123_subdomain, errors);
        }
        let csi = spec.at("csi");
        if csi.is_absent() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(csi.required(detail));
        }
    }
}

/// Only some sources take the options that an annotation names.
fn mount_options(volume: &At<'_, '_>, errors: &mut Errors) {
    let annotation = &volume.value["metadata"]["annotations"][MOUNT_OPTIONS];
    let takes_options = || {
        let spec = volume.at("spec");
        source::WITH_MOUNT_OPTIONS.iter().any(|key| spec.at(key).is_set())
    };
    if !annotation.is_null() && !takes_options() {
        let field = format!("metadata.annotations.{MOUNT_OPTIONS}");
        let why = "may not specify mount options for this volume type";
        errors.push(FieldError::forbidden(field, why));
    }
}

/// The mistakes in a volume that is described within another object instead of being one.
pub(in crate::kinds) fn check_inline(spec: &At<'_, '_>, errors: &mut Errors) {
    const NOT_HERE: &str = "may not be specified in the context of inline volumes";
    let forbid = |key: &str, errors: &mut Errors| {
        if !spec.at(key).is_empty() {
            errors.push(spec.at(key).forbidden(NOT_HERE));
        }
    };
    if spec.at("claimRef").is_set() {
        errors.push(spec.at("claimRef").forbidden(NOT_HERE));
    }
    forbid("capacity", errors);
    if spec.at("csi").is_absent() {
        let detail = "has to be specified in the context of inline volumes";
        errors.push(spec.at("csi").required(detail));
    }
    access_modes(spec, errors);
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if !["", "Retain"].contains(&policy.text()) {
        errors.push(policy.forbidden("may only be Retain in the context of inline volumes"));
    }
    if spec.at("nodeAffinity").is_set() {
        errors.push(spec.at("nodeAffinity").forbidden(NOT_HERE));
    }
    source::check(spec, None, errors);
    recycles_root(spec, errors);
    forbid("storageClassName", errors);
    let mode = spec.at("volumeMode");
    if mode.is_set() && mode.text() != "Filesystem" {
        errors.push(mode.forbidden(
            "may not specify volumeMode other than Filesystem in the context of inline volumes",
        ));
    }
}

/// Fills in a volume that is described within another object.
pub(in crate::kinds) fn inline_defaults(spec: &mut Value) {
    source::defaults(spec);
}

/// To recycle a volume is to remove all that is in it.
fn recycles_root(spec: &At<'_, '_>, errors: &mut Errors) {
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if is_root(text(&spec.value["hostPath"]["path"])) && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
}

/// Whether a path means `/`, however it is written.
fn is_root(path: &str) -> bool {
    let depth = path.split('/').fold(0_usize, |depth, step| match step {
        "" | "." => depth,
        ".." => depth.saturating_sub(1),
        _ => depth + 1,
    });
    path.starts_with('/') && depth == 0
}

/// At least one way to use it, all of them known, and one that excludes the others.
fn access_modes(spec: &At<'_, '_>, errors: &mut Errors) {
    spec.at("accessModes").require(errors);
    known_access_modes(spec, errors);
}

/// All ways to use it known, and one that excludes the others.
pub(super) fn known_access_modes(spec: &At<'_, '_>, errors: &mut Errors) {
    let modes = spec.at("accessModes");
    let known = |mode: &&Value| ACCESS_MODES.contains(&text(mode));
    for mode in items(modes.value).iter().filter(|mode| !known(mode)) {
        errors.push(FieldError::not_supported(modes.path(), mode, ACCESS_MODES));
    }
    let alone = |mode: &&Value| *mode == "ReadWriteOncePod";
    let all = || items(modes.value).iter().filter(known);
    if all().any(|mode| alone(&mode)) && !all().all(|mode| alone(&mode)) {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

fn capacity(spec: &At<'_, '_>, errors: &mut Errors) {
    let capacity = spec.at("capacity");
    if capacity.is_empty() {
        errors.push(capacity.required(""));
    }
    if capacity.value["storage"].is_null() || capacity.len() > 1 {
        errors.push(capacity.not_supported(&["storage"]));
    }
    for (_, amount) in spec.at("capacity").entries() {
        not_below_zero(&amount, errors);
        if Quantity::of(amount.value).is_some_and(|amount| !amount.is_positive()) {
            errors.push(amount.invalid("must be greater than zero"));
        }
    }
}

/// Complains about an amount below zero, which is told as a number.
pub(super) fn not_below_zero(amount: &At<'_, '_>, errors: &mut Errors) {
    let value = Quantity::of(amount.value).map_or(0, Quantity::value);
    if value < 0 {
        errors.push(amount.invalid_value(value, "must be a valid resource quantity"));
    }
}

fn change(volume: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = volume.at("spec");
    let mut new = spec.value.clone();
    let mut before = old["spec"].clone();
    source::defaults(&mut before);
    // The secret for growing may be added later.
    if before["csi"].is_object() && before["csi"]["controllerExpandSecretRef"].is_null() {
        within_existing(&mut new, "csi", |csi| drop(remove(csi, "controllerExpandSecretRef")));
    }
    if !source::same(&before, &new) {
        let changes = internal::diff("PersistentVolumeSource", &before, &new);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
        errors.push(FieldError::forbidden("spec.persistentvolumesource", &detail));
    }
    if spec.value["volumeMode"] != old["spec"]["volumeMode"] {
        let mode = &spec.value["volumeMode"];
        errors.push(FieldError::invalid("volumeMode", mode, "field is immutable"));
    }
    let affinity = &spec.value["nodeAffinity"];
    let was = &old["spec"]["nodeAffinity"];
    if !was.is_null() && !same(&with_newer_labels(was, affinity), affinity) {
        let detail = "field is immutable, except for updating from beta label to GA";
        let shown = At::new(affinity, "nodeAffinity");
        errors.push(shown.invalid_as("*VolumeNodeAffinity", detail));
    }
    let class = spec.at("volumeAttributesClassName");
    if class.is_absent() && !old["spec"]["volumeAttributesClassName"].is_null() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// Where a volume could be used, with the labels of nodes under their newer names as far as
/// another version of the same has those.
fn with_newer_labels(affinity: &Value, new: &Value) -> Value {
    let mut affinity = affinity.clone();
    let terms = "/required/nodeSelectorTerms";
    let Some(list) = affinity.pointer_mut(terms).and_then(Value::as_array_mut) else {
        return affinity;
    };
    let wanted = items(new.pointer(terms).unwrap_or(&Value::Null));
    for (term, wanted) in list.iter_mut().zip(wanted) {
        for part in ["matchExpressions", "matchFields"] {
            let requirements = term.get_mut(part).and_then(Value::as_array_mut);
            let pairs = requirements.into_iter().flatten().zip(items(&wanted[part]));
            for (requirement, wanted) in pairs {
                let newer = (text(&requirement["key"]), text(&wanted["key"]));
                if NEWER_LABELS.contains(&newer) {
                    set(requirement, "key", wanted["key"].clone());
                }
            }
        }
    }
    affinity
}
