//! The audiences that a Pod's volumes name, themselves or by the driver that mounts them.

use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Named;

use super::super::fields::{items, text};
use super::super::stored;
use crate::state::Server;
use crate::status::{Result, Status};

/// The drivers of volumes that Kubernetes once mounted by itself.
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// Whether a volume of a Pod names an audience; the inner error says what else could not be found.
pub(super) async fn is_named(
    server: &Server,
    pod: &Value,
    audience: &str,
) -> Result<Result<bool, String>> {
    let mut lost = Vec::new();
    for volume in items(&pod["spec"]["volumes"]) {
        let projected = items(&volume["projected"]["sources"]);
        let is_its = |source: &&Value| {
            let token = &source["serviceAccountToken"];
            token.is_object() && text(&token["audience"]) == audience
        };
        if projected.iter().any(|source| is_its(&source)) {
            return Ok(Ok(true));
        }
        match is_of_driver(server, pod, volume, audience).await {
            Ok(true) => return Ok(Ok(true)),
            Ok(false) => {}
            Err(status) if status.code == 404 => lost.push(status.message),
            Err(status) => return Err(status),
        }
    }
    Ok(match lost.as_slice() {
        [] => Ok(false),
        [one] => Err(one.clone()),
        more => Err(format!("[{}]", more.join(", "))),
    })
}

async fn is_of_driver(
    server: &Server,
    pod: &Value,
    volume: &Value,
    audience: &str,
) -> Result<bool> {
    let driver = if volume["ephemeral"]["volumeClaimTemplate"].is_object() {
        let claim = format!("{}-{}", metadata::text(pod, "name"), text(&volume["name"]));
        of_claim(server, pod, &claim).await?
    } else if volume["persistentVolumeClaim"].is_object() {
        of_claim(server, pod, text(&volume["persistentVolumeClaim"]["claimName"])).await?
    } else {
        driver(volume)
    };
    if driver.is_empty() {
        return Ok(false);
    }
    let key = format!("/registry/csidrivers/{driver}");
    let named = Named { group: "storage.k8s.io", resource: "csidriver", name: &driver };
    let found = find(server, &key, named).await?;
    let requests = items(&found["spec"]["tokenRequests"]);
    Ok(requests.iter().any(|request| text(&request["audience"]) == audience))
}

/// The driver of the volume that a claim is bound to.
async fn of_claim(server: &Server, pod: &Value, claim: &str) -> Result<String> {
    let key =
        format!("/registry/persistentvolumeclaims/{}/{claim}", metadata::text(pod, "namespace"));
    let named = Named { group: "", resource: "persistentvolumeclaim", name: claim };
    let claim = find(server, &key, named).await?;
    let name = text(&claim["spec"]["volumeName"]);
    let key = format!("/registry/persistentvolumes/{name}");
    let named = Named { group: "", resource: "persistentvolume", name };
    let volume = find(server, &key, named).await?;
    Ok(driver(&volume["spec"]))
}

/// The driver of a source of a volume; empty if it has none.
fn driver(source: &Value) -> String {
    let migrated = MIGRATED.iter().find(|(field, _)| source[field].is_object());
    match source["csi"]["driver"].as_str() {
        Some(driver) => driver.to_owned(),
        None => migrated.map_or("", |(_, driver)| driver).to_owned(),
    }
}

async fn find(server: &Server, key: &str, named: Named<'_>) -> Result<Value> {
    stored::object(server, key).await?.ok_or_else(|| Status::not_found(named))
}
