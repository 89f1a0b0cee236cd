//! Where the data of a persistent volume lies: what each sort of source must say.

use serde_json::Value;

use crate::field::FieldError;
use crate::kinds::core::devices;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{self, fill, fill_text, within_existing};

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
    ("quobyte", "quobyte", &[]),
    ("cephfs", "cephfs", &["monitors"]),
    ("iscsi", "iscsi", &["targetPortal"]),
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
    ("storageos", "storageos", &["volumeName"]),
    ("csi", "csi", &[]),
];

/// The sources that take the options of an annotation.
pub(super) const WITH_MOUNT_OPTIONS: &[&str] = &[
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

/// What sources are filled in with: texts that may not be empty.
const TEXTS: &[(&str, &[(&str, &str)])] = &[
    ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
    ("iscsi", &[("iscsiInterface", "default")]),
    ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
];

/// Fills in the source of a volume.
pub(super) fn defaults(spec: &mut Value) {
    within_existing(spec, "hostPath", |path| fill(path, "type", ""));
    for (source, fields) in TEXTS {
        within_existing(spec, source, |source| {
            for (field, value) in *fields {
                fill_text(source, field, value);
            }
        });
    }
    within_existing(spec, "azureDisk", |disk| {
        fill(disk, "cachingMode", "ReadWrite");
        fill(disk, "fsType", "ext4");
        fill(disk, "readOnly", false);
        fill(disk, "kind", "Shared");
    });
}

/// The mistakes in the sources of a volume, of which it must have exactly one. A volume without a
/// name is part of another object.
pub(super) fn check(spec: &At<'_, '_>, name: Option<&str>, errors: &mut Errors) {
    let mut found = 0;
    for (key, path, needed) in SOURCES {
        let source = spec.at(key);
        if source.is_absent() {
            continue;
        }
        found += 1;
        // Of all sources, Kubernetes lets this one stand beside others.
        if found > 1 && *key != "flexVolume" {
            let shown = if *key == "cephfs" { "cephFS" } else { key };
            errors.push(spec.at(shown).forbidden("may not specify more than 1 volume type"));
            continue;
        }
        let source = spec.named(path).with(source.value);
        source.require_all(needed, errors);
        match *key {
            "local" => {
                no_backsteps(&source.at("path"), errors);
                if name.is_none() || spec.value["nodeAffinity"].is_null() {
                    let affinity = spec.at("nodeAffinity");
                    errors.push(affinity.required("Local volume requires node affinity"));
                }
            }
            "iscsi" => iscsi(&source, name.unwrap_or_default(), errors),
            key => details(key, &source, errors),
        }
    }
    if found == 0 {
        errors.push(spec.required("must specify a volume type"));
    }
}

/// What some sources must satisfy besides having their fields.
fn details(key: &str, source: &At<'_, '_>, errors: &mut Errors) {
    let path = source.at("path");
    match key {
        "hostPath" if !path.is_empty() => {
            no_backsteps(&path, errors);
            source.at("type").one_of(HOST_PATH_TYPES, errors);
        }
        "nfs" if !path.text().starts_with('/') => {
            errors.push(path.invalid_value(path.text(), "must be an absolute path"));
        }
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            let partition = source.at("partition");
            // Zero is none; the text does not speak of it.
            if partition.number().is_some_and(|number| !(0..=255).contains(&number)) {
                errors.push(partition.invalid("must be between 1 and 255, inclusive"));
            }
        }
        "glusterfs" => {
            let namespace = source.at("endpointsNamespace");
            if namespace.is_set() && namespace.is_empty() {
                let why = "if the endpointnamespace is set, it must be a valid namespace name";
                errors.push(namespace.invalid(why));
            }
            namespace.may_follow(names::dns1123_label, errors);
        }
        "flocker" => devices::flocker(source, errors),
        "quobyte" => devices::quobyte(source, errors),
        "cinder" => secret_reference(&source.at("secretRef"), errors),
        "fc" => devices::fibre_channel(source, errors),
        "flexVolume" => devices::flex(source, errors),
        "azureFile" => {
            let namespace = source.at("secretNamespace");
            if namespace.is_set() {
                namespace.require(errors);
            }
        }
        "azureDisk" => devices::azure_disk(source, errors),
        "storageos" => {
            source.at("volumeName").may_follow(names::dns1123_label, errors);
            source.at("volumeNamespace").may_follow(names::dns1123_label, errors);
            secret_reference(&source.at("secretRef"), errors);
        }
        "csi" => csi(source, errors),
        _ => {}
    }
}

fn no_backsteps(path: &At<'_, '_>, errors: &mut Errors) {
    if path.text().split('/').any(|step| step == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

/// A secret that is named at all has a name and a namespace.
fn secret_reference(secret: &At<'_, '_>, errors: &mut Errors) {
    if secret.is_set() {
        secret.require_all(&["name", "namespace"], errors);
    }
}

fn iscsi(source: &At<'_, '_>, volume: &str, errors: &mut Errors) {
    const FORMAT: &str = "must be valid format";
    let portal = source.at("targetPortal");
    let initiator = source.at("initiatorName");
    if initiator.is_set() && volume.len() + 1 + portal.text().len() > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters \
                   if iscsi.initiatorName is specified.";
        errors.push(source.named("targetportal").invalid_value(portal.text(), why));
    }
    let name = source.at("iqn");
    if name.require(errors) && !devices::is_initiator(name.text()) {
        errors.push(name.invalid(FORMAT));
    }
    source.at("lun").within(0..=255, errors);
    let authenticates = ["chapAuthDiscovery", "chapAuthSession"];
    let secret = source.at("secretRef");
    if secret.is_set() {
        secret.at("name").require(errors);
    } else if authenticates.iter().any(|key| source.at(key).is_true()) {
        errors.push(secret.required(""));
    }
    if initiator.is_set() && !devices::is_initiator(initiator.text()) {
        errors.push(source.named("initiatorname").with(initiator.value).invalid(FORMAT));
    }
}

fn csi(source: &At<'_, '_>, errors: &mut Errors) {
    driver_name(&source.at("driver"), errors);
    source.at("volumeHandle").require(errors);
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

/// Whether two volumes have the same source.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    SOURCES.iter().all(|(key, ..)| document::same(&one[*key], &other[*key]))
}
