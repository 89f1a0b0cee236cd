//! `PersistentVolumes`: exactly one source, which stays, and what a volume offers.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, items, remove, text, within, within_existing};
use crate::rules::label_selector::node_selector;

/// The ways to use a volume.
pub(in crate::kinds) const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// The two forms of a volume.
pub(in crate::kinds) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// What may lie at a path of the host.
pub(in crate::kinds) const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// The sources a volume can have, where complaints about them stand, and what each must say.
const SOURCES: &[(&str, &str, &[&str])] = &[
    ("hostPath", "hostPath", &["path"]),
    ("gcePersistentDisk", "persistentDisk", &["pdName"]),
    ("awsElasticBlockStore", "awsElasticBlockStore", &["volumeID"]),
    ("glusterfs", "glusterfs", &["endpoints", "path"]),
    ("flocker", "flocker", &[]),
    ("nfs", "nfs", &["server", "path"]),
    ("rbd", "rbd", &["monitors", "image"]),
    ("quobyte", "quobyte", &["registry", "volume"]),
    ("cephfs", "cephfs", &["monitors"]),
    ("iscsi", "iscsi", &["targetPortal", "iqn"]),
    ("cinder", "cinder", &["volumeID"]),
    ("fc", "fc", &[]),
    ("flexVolume", "flexVolume", &["driver"]),
    ("azureFile", "azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", "vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", "photonPersistentDisk", &["pdID"]),
    ("portworxVolume", "portworxVolume", &["volumeID"]),
    ("azureDisk", "azureDisk", &["diskName", "diskURI"]),
    ("scaleIO", "scaleIO", &["gateway", "system", "volumeName"]),
    ("local", "local", &["path"]),
    ("storageos", "storageos", &[]),
    ("csi", "csi", &["volumeHandle"]),
];

/// The strategy of persistent volumes.
pub(in crate::kinds) const VOLUME: Rules = Rules {
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
    sources(spec, errors);
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

fn sources(spec: &At<'_, '_>, errors: &mut Errors) {
    let mut found = 0;
    for (key, path, needed) in SOURCES {
        let source = spec.at(key);
        if source.is_absent() {
            continue;
        }
        found += 1;
        if found > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        let path = format!("{}.{path}", spec.path());
        let source = At::new(source.value, &path);
        if *key == "csi" {
            csi(&source, errors);
        }
        for field in *needed {
            source.at(field).require(errors);
        }
        details(key, &source, spec, errors);
    }
    if found == 0 {
        errors.push(spec.required("must specify a volume type"));
    }
}

/// What some sources must satisfy besides having their fields.
fn details(key: &str, source: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    let path = source.at("path");
    match key {
        "hostPath" | "local" => {
            if path.text().split('/').any(|step| step == "..") {
                errors.push(path.invalid("must not contain '..'"));
            }
            if key == "hostPath" {
                source.at("type").one_of(HOST_PATH_TYPES, errors);
            } else if spec.value["nodeAffinity"].is_null() {
                let affinity = spec.at("nodeAffinity");
                errors.push(affinity.required("Local volume requires node affinity"));
            }
        }
        "nfs" if !path.text().starts_with('/') => {
            let given = Value::from(path.text());
            let detail = "must be an absolute path";
            errors.push(FieldError::invalid(path.path(), &given, detail));
        }
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            source.at("partition").within(0..=255, errors);
        }
        "iscsi" => iscsi(source, errors),
        "fc" => fibre_channel(source, errors),
        "azureFile" => {
            let namespace = source.at("secretNamespace");
            if namespace.is_set() {
                namespace.require(errors);
            }
        }
        "azureDisk" => {
            let modes = ["None", "ReadOnly", "ReadWrite"];
            source.at("cachingMode").one_of(&modes, errors);
            source.at("kind").one_of(&["Dedicated", "Managed", "Shared"], errors);
        }
        _ => {}
    }
}

fn iscsi(source: &At<'_, '_>, errors: &mut Errors) {
    let name = source.at("iqn");
    let known = ["iqn", "eui", "naa"].iter().any(|form| name.text().starts_with(form));
    if !name.is_empty() && !known {
        errors.push(name.invalid("must be valid format"));
    }
    source.at("lun").within(0..=255, errors);
    let chap = |key: &str| source.value[key] == true;
    let secret = source.at("secretRef");
    if secret.is_absent() {
        if chap("chapAuthDiscovery") || chap("chapAuthSession") {
            errors.push(secret.required(""));
        }
    } else {
        secret.at("name").require(errors);
    }
}

fn fibre_channel(source: &At<'_, '_>, errors: &mut Errors) {
    let (targets, ids, lun) = (source.at("targetWWNs"), source.at("wwids"), source.at("lun"));
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => {
            let detail = "must specify either targetWWNs or wwids, but not both";
            errors.push(targets.required(detail));
        }
        (false, false) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(targets.invalid(detail));
        }
        _ => {}
    }
    if !targets.is_empty() {
        if lun.is_absent() {
            errors.push(lun.required("lun is required if targetWWNs is specified"));
        } else {
            lun.within(0..=255, errors);
        }
    }
}

fn csi(source: &At<'_, '_>, errors: &mut Errors) {
    driver_name(&source.at("driver"), errors);
    let secrets = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    for key in secrets {
        let secret = source.at(key);
        if secret.is_set() {
            secret.at("name").requires(names::dns1123_subdomain, errors);
            secret.at("namespace").requires(names::dns1123_label, errors);
        }
    }
}

/// Must be the name of a CSI driver.
pub(in crate::kinds) fn driver_name(name: &At<'_, '_>, errors: &mut Errors) {
    if !name.require(errors) {
        return;
    }
    if name.text().len() > 63 {
        errors.push(FieldError::too_long(name.path(), 63));
    }
    let complaints = names::dns1123_subdomain(&name.text().to_lowercase());
    errors.extend(complaints.iter().map(|complaint| name.invalid(complaint)));
}

fn change(volume: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = volume.at("spec");
    let source = |spec: &Value| -> Vec<Value> {
        SOURCES.iter().map(|(key, ..)| spec[*key].clone()).collect()
    };
    let mut new = spec.value.clone();
    // The secret for growing may be added later.
    if old["spec"]["csi"]["controllerExpandSecretRef"].is_null() {
        within_existing(&mut new, "csi", |csi| drop(remove(csi, "controllerExpandSecretRef")));
    }
    if source(&old["spec"]) != source(&new) {
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
