//! Persistent volumes: what a volume offers, and that its source stays. [`source`] has the rules
//! of the sources, of which a volume has exactly one.

pub(super) mod columns;
mod source;

pub(in crate::kinds) use self::source::{HOST_PATH_TYPES, driver_name};

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::quantity::Quantity;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, items, remove, text, within, within_existing};
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

/// The two forms of a volume.
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

const RULES: Rules = Rules {
    default: |volume| {
        within(volume, "spec", |spec| {
            fill_text(spec, "persistentVolumeReclaimPolicy", "Retain");
            fill(spec, "volumeMode", "Filesystem");
            within_existing(spec, "hostPath", |path| fill(path, "type", ""));
        });
    },
    status: Some(|| json!({"phase": "Pending"})),
    check: |volume, _, errors| check(&volume.at("spec"), errors),
    change,
    prepare_status: |_, volume| {
        within(volume, "status", |status| fill_text(status, "phase", "Pending"));
    },
    ..Rules::NONE
};

fn check(spec: &At<'_, '_>, errors: &mut Errors) {
    access_modes(spec, "", errors);
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
    source::check(spec, errors);
    if text(&spec.value["hostPath"]["path"]) == "/" && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
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

/// At least one way to use it, all of them known, and one that excludes the others.
pub(super) fn access_modes(spec: &At<'_, '_>, detail: &str, errors: &mut Errors) {
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        errors.push(modes.required(detail));
    }
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
        if Quantity::of(amount.value).is_some_and(|amount| !amount.is_positive()) {
            errors.push(amount.invalid("must be greater than zero"));
        }
    }
}

fn change(volume: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = volume.at("spec");
    let mut new = spec.value.clone();
    // The secret for growing may be added later.
    if old["spec"]["csi"]["controllerExpandSecretRef"].is_null() {
        within_existing(&mut new, "csi", |csi| drop(remove(csi, "controllerExpandSecretRef")));
    }
    if !source::same(&old["spec"], &new) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", detail));
    }
    if spec.value["volumeMode"] != old["spec"]["volumeMode"] {
        let mode = &spec.value["volumeMode"];
        errors.push(FieldError::invalid("volumeMode", mode, "field is immutable"));
    }
    let affinity = &old["spec"]["nodeAffinity"];
    if !affinity.is_null() && spec.value["nodeAffinity"] != *affinity {
        let value = &spec.value["nodeAffinity"];
        errors.push(FieldError::invalid("nodeAffinity", value, "field is immutable"));
    }
    let class = spec.at("volumeAttributesClassName");
    if class.is_absent() && !old["spec"]["volumeAttributesClassName"].is_null() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}
