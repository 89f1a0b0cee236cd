//! Volumes are of types that concern the Pod alone, or that someone else has provided.

use std::collections::BTreeSet;

use serde_json::Value;

use super::subject::text;
use super::wording::{plural, quoted};
use super::{Pod, Violation};

const ALLOWED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The other types, in the order in which they are looked for.
const RESTRICTED: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let is_bad = |volume: &&Value| ALLOWED.iter().all(|source| volume[*source].is_null());
    let bad: Vec<&Value> = pod.volumes().iter().filter(is_bad).collect();
    if bad.is_empty() {
        return None;
    }
    let types: BTreeSet<&str> = bad.iter().map(|volume| type_of(volume)).collect();
    let names = bad.iter().map(|volume| text(&volume["name"]));
    let volumes = plural(bad.len(), "volume", "volumes");
    let uses = plural(bad.len(), "uses", "use");
    let word = plural(types.len(), "restricted volume type", "restricted volume types");
    let detail = format!("{volumes} {} {uses} {word} {}", quoted(names), quoted(&types));
    Some(Violation::new("restricted volume types", detail))
}

fn type_of(volume: &Value) -> &'static str {
    let is_set = |source: &&&str| !volume[**source].is_null();
    RESTRICTED.iter().find(is_set).copied().unwrap_or("unknown")
}
