//! What of the API a Pod refers to: one that a node makes must refer to nothing.

use serde_json::Value;

use super::super::fields::{items, text};
use super::super::secrets;

/// The sources of volumes that need nothing of the API.
const INDEPENDENT: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// The sources that need something, and what.
const DEPENDENT: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// The same of what is projected into one volume.
const PROJECTED: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// The first of all resources that a Pod refers to, if any; an error where nobody can tell.
pub(super) fn of(pod: &Value) -> Result<Option<&'static str>, String> {
    let spec = &pod["spec"];
    if ["serviceAccountName", "serviceAccount"].iter().any(|field| !text(&spec[field]).is_empty()) {
        return Ok(Some("serviceaccounts"));
    }
    if secrets::are_referenced(spec) {
        return Ok(Some("secrets"));
    }
    if has_config_maps(spec) {
        return Ok(Some("configmaps"));
    }
    if !items(&spec["resourceClaims"]).is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in items(&spec["volumes"]) {
        if let found @ Some(_) = of_volume(volume)? {
            return Ok(found);
        }
    }
    Ok(None)
}

fn has_config_maps(spec: &Value) -> bool {
    let has = |name: &Value| !text(name).is_empty();
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let in_containers = lists.iter().flat_map(|list| items(&spec[list])).any(|container| {
        items(&container["envFrom"]).iter().any(|env| has(&env["configMapRef"]["name"]))
            || items(&container["env"])
                .iter()
                .any(|env| has(&env["valueFrom"]["configMapKeyRef"]["name"]))
    });
    in_containers
        || items(&spec["volumes"]).iter().any(|volume| {
            let projected = items(&volume["projected"]["sources"]);
            has(&volume["configMap"]["name"])
                || projected.iter().any(|source| has(&source["configMap"]["name"]))
        })
}

fn of_volume(volume: &Value) -> Result<Option<&'static str>, String> {
    let is = |source: &str| !volume[source].is_null();
    if INDEPENDENT.iter().any(|source| is(source)) {
        return Ok(None);
    }
    if let Some((_, what)) = DEPENDENT.iter().find(|(source, _)| is(source)) {
        return Ok(Some(what));
    }
    let name = text(&volume["name"]);
    if !is("projected") {
        return Err(format!("unknown volume type for volume  {name:?}"));
    }
    for source in items(&volume["projected"]["sources"]) {
        if let Some((_, what)) = PROJECTED.iter().find(|(field, _)| !source[field].is_null()) {
            return Ok(Some(what));
        }
        if source["downwardAPI"].is_null() {
            return Err(format!("unknown source for projected volume {name:?}"));
        }
    }
    Ok(None)
}
