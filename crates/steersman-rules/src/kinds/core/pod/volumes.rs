//! Volumes of a pod: every source there is, one table for what each requires.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::paths::{descending, no_backsteps};
use super::{claims, containers, projected};
use crate::kinds::core::devices;
use crate::kinds::core::persistent_volume::HOST_PATH_TYPES;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::at::{At, Errors};

type Rule = fn(&At<'_, '_>, &mut Errors);

/// What a source requires: the fields that may not be empty, then further rules.
struct Source(&'static str, &'static [&'static str], Rule);

/// All sources, in the order Kubernetes looks at them.
const SOURCES: &[Source] = &[
    Source("emptyDir", &[], empty_dir),
    Source("hostPath", &["path"], host_path),
    Source("gitRepo", &["repository"], |at, e| descending(&at.at("directory"), e)),
    Source("gcePersistentDisk", &["pdName"], partition),
    Source("awsElasticBlockStore", &["volumeID"], partition),
    Source("secret", &["secretName"], projected::files),
    Source("nfs", &["server", "path"], nfs),
    Source("iscsi", &["targetPortal", "iqn"], devices::iscsi),
    Source("glusterfs", &["endpoints", "path"], nothing),
    Source("flocker", &[], devices::flocker),
    Source("persistentVolumeClaim", &["claimName"], nothing),
    Source("rbd", &["monitors", "image"], nothing),
    Source("cinder", &["volumeID"], secret_name),
    Source("cephfs", &["monitors"], nothing),
    Source("quobyte", &[], devices::quobyte),
    Source("downwardAPI", &[], projected::downward),
    Source("fc", &[], devices::fibre_channel),
    Source("flexVolume", &["driver"], devices::flex),
    Source("configMap", &["name"], projected::files),
    Source("azureFile", &["secretName", "shareName"], nothing),
    Source("vsphereVolume", &["volumePath"], nothing),
    Source("photonPersistentDisk", &["pdID"], nothing),
    Source("portworxVolume", &["volumeID"], nothing),
    Source("azureDisk", &["diskName", "diskURI"], devices::azure_disk),
    Source("storageos", &["volumeName"], storage_os),
    Source("projected", &[], projected::validate),
    Source("scaleIO", &["gateway", "system", "volumeName"], nothing),
    Source("csi", &["driver"], csi),
    Source("ephemeral", &["volumeClaimTemplate"], ephemeral),
    Source("image", &[], |at, e| containers::pull_policy(&at.at("pullPolicy"), e)),
];

/// Adds the mistakes in the volumes of a pod, and gives the valid ones by name.
pub(super) fn validate<'v>(
    list: &At<'v, '_>,
    metadata: &Value,
    errors: &mut Errors,
) -> HashMap<&'v str, &'v Value> {
    let mut valid = HashMap::new();
    let made = made_claims(list, metadata);
    for volume in list.items() {
        let before = errors.len();
        let name = volume.at("name");
        source(&volume, metadata, errors);
        name.requires(names::dns1123_label, errors);
        if valid.contains_key(name.text()) {
            errors.push(name.duplicate());
        }
        if errors.len() == before {
            valid.insert(name.text(), volume.value);
        }
        let claim = volume.at("persistentVolumeClaim.claimName");
        if made.contains(claim.text()) {
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(claim.invalid(why));
        }
    }
    valid
}

/// The claims that will be made for the ephemeral volumes of a pod.
fn made_claims(list: &At<'_, '_>, metadata: &Value) -> HashSet<String> {
    let Some(pod) = metadata["name"].as_str() else { return HashSet::new() };
    let ephemeral = list.list().iter().filter(|volume| !volume["ephemeral"].is_null());
    let names = ephemeral.filter_map(|volume| volume["name"].as_str());
    names.map(|name| format!("{pod}-{name}")).collect()
}

fn source(volume: &At<'_, '_>, metadata: &Value, errors: &mut Errors) {
    let mut given = SOURCES.iter().filter(|source| volume.at(source.0).is_set());
    let Some(Source(key, required, rule)) = given.next() else {
        errors.push(volume.required("must specify a volume type"));
        return;
    };
    // The disk has another name where it is validated.
    let shown = if *key == "gcePersistentDisk" { "persistentDisk" } else { *key };
    let found = volume.at(key);
    let place = volume.named(shown).with(found.value);
    place.require_all(required, errors);
    rule(&place, errors);
    for Source(key, ..) in given {
        // Two have another name where they are one too many.
        let shown = match *key {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            key => key,
        };
        errors.push(volume.named(shown).forbidden("may not specify more than 1 volume type"));
    }
    let name = volume.at("name");
    let pod = metadata["name"].as_str().unwrap_or_default();
    if volume.at("ephemeral").is_set() && !pod.is_empty() && !name.text().is_empty() {
        let claim = format!("{pod}-{}", name.text());
        for why in names::dns1123_subdomain(&claim) {
            errors.push(name.invalid(&format!("PVC name {claim:?}: {why}")));
        }
    }
    if metadata.is_object() && *key == "image" {
        place.require_all(&["reference"], errors);
    }
    let portal = volume.at("iscsi.targetPortal").text();
    let initiator = volume.at("iscsi.initiatorName");
    if initiator.is_set() && name.text().len() + 1 + portal.len() > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters \
                   if iscsi.initiatorName is specified.";
        errors.push(name.invalid(why));
    }
}

fn nothing(_: &At<'_, '_>, _: &mut Errors) {}

fn empty_dir(at: &At<'_, '_>, errors: &mut Errors) {
    let limit = at.at("sizeLimit");
    if Quantity::of(limit.value).is_some_and(Quantity::is_negative) {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

fn host_path(at: &At<'_, '_>, errors: &mut Errors) {
    if !at.at("path").text().is_empty() {
        no_backsteps(&at.at("path"), errors);
        at.at("type").one_of(HOST_PATH_TYPES, errors);
    }
}

fn partition(at: &At<'_, '_>, errors: &mut Errors) {
    let partition = at.at("partition");
    if partition.number().is_some_and(|number| !(0..=255).contains(&number)) {
        errors.push(partition.invalid("must be between 1 and 255, inclusive"));
    }
}

fn nfs(at: &At<'_, '_>, errors: &mut Errors) {
    if !at.at("path").text().starts_with('/') {
        errors.push(at.at("path").invalid("must be an absolute path"));
    }
}

fn secret_name(at: &At<'_, '_>, errors: &mut Errors) {
    if at.at("secretRef").is_set() {
        at.at("secretRef").require_all(&["name"], errors);
    }
}

fn storage_os(at: &At<'_, '_>, errors: &mut Errors) {
    at.at("volumeName").may_follow(names::dns1123_label, errors);
    at.at("volumeNamespace").may_follow(names::dns1123_label, errors);
    secret_name(at, errors);
}

fn csi(at: &At<'_, '_>, errors: &mut Errors) {
    let driver = at.at("driver");
    if driver.text().len() > 63 {
        errors.push(driver.too_long(63));
    }
    driver.may_follow(|name| names::dns1123_subdomain(&name.to_lowercase()), errors);
    let secret = at.at("nodePublishSecretRef");
    if secret.is_absent() {
        return;
    }
    let name = secret.at("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        at.named("name").with(name.value).follows(names::dns1123_subdomain, errors);
    }
}

fn ephemeral(at: &At<'_, '_>, errors: &mut Errors) {
    if at.at("volumeClaimTemplate").is_set() {
        claims::volume_template(&at.at("volumeClaimTemplate"), errors);
    }
}
