//! Where the data of a persistent volume lies: what each sort of source must say.

use serde_json::Value;

use crate::field::FieldError;
use crate::names;
use crate::rules::at::{At, Errors};

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

/// The mistakes in the sources of a volume, of which it must have exactly one.
pub(super) fn check(spec: &At<'_, '_>, errors: &mut Errors) {
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
    let targets = source.at("targetWWNs");
    let ids = source.at("wwids");
    let lun = source.at("lun");
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

/// Whether two volumes have the same source.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    SOURCES.iter().all(|(key, ..)| one[*key] == other[*key])
}
