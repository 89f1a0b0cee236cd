//! The CSINode of a machine, in which drivers of volumes say what they can do there. A kubelet makes one
//! beside its Node, whether or not there is a driver.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::{CSINode, CSINodeSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::{DeleteParams, Preconditions};
use steersman::{Client, Result};

/// Names the volumes that were once built in and are left to drivers.
const MIGRATED: (&str, &str) = (
    "storage.alpha.kubernetes.io/migrated-plugins",
    "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,\
     kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume",
);

/// Makes the CSINode of this Node, unless there is one.
pub(super) async fn ensure(node: &Node, client: &Client) -> Result<()> {
    match client.create(&csi_node(node)).await {
        Err(error) if error.is_already_exists() => replace_stale(node, client).await,
        created => created.map(drop),
    }
}

/// Replaces one that was made for another Node of that name.
async fn replace_stale(node: &Node, client: &Client) -> Result<()> {
    let wanted = csi_node(node);
    let name = wanted.metadata.name.as_deref().unwrap_or_default();
    let Some(found) = client.get::<CSINode>(name).await? else {
        return client.create(&wanted).await.map(drop);
    };
    if is_owned(&found, node) {
        return Ok(());
    }
    let preconditions = Preconditions { uid: found.metadata.uid, resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match client.delete::<CSINode>(name, &params).await {
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    client.create(&wanted).await.map(drop)
}

fn is_owned(found: &CSINode, node: &Node) -> bool {
    let mut owners = found.metadata.owner_references.iter().flatten();
    owners.any(|it| it.kind == "Node" && Some(&it.uid) == node.metadata.uid.as_ref())
}

/// The CSINode of a machine without drivers, which goes when its Node goes.
fn csi_node(node: &Node) -> CSINode {
    let (key, value) = MIGRATED;
    CSINode {
        metadata: ObjectMeta {
            name: node.metadata.name.clone(),
            annotations: Some([(key.to_owned(), value.to_owned())].into()),
            owner_references: node.owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: CSINodeSpec { drivers: Vec::new() },
    }
}
