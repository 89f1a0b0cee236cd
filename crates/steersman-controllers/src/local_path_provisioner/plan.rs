//! Which volume a claim gets.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};
use steersman::volumes::{
    PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER, annotation, claim_class, volume_name,
    waits_for_consumer,
};

use super::PROVISIONER;

/// Where the directories are.
const ROOT: &str = "/var/lib/steersman/local-path";
/// The label by which a volume names its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What happens to a claim.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// It waits for a node.
    Wait,
    /// It gets this volume.
    Create(Box<PersistentVolume>),
    /// It gets none, for this reason.
    Fail(String),
    /// The node that was chosen is gone: another must be chosen.
    Reschedule(String),
}

/// Whether a claim asks this provisioner for a volume.
pub(super) fn asks(claim: &PersistentVolumeClaim) -> bool {
    annotation(&claim.metadata, STORAGE_PROVISIONER) == Some(PROVISIONER)
        && volume_name(claim).is_empty()
        && claim.metadata.deletion_timestamp.is_none()
}

/// Whether a volume was made here and nobody needs it any more.
pub(super) fn is_over(volume: &PersistentVolume) -> bool {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let spec = volume.spec.as_ref();
    let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    annotation(&volume.metadata, PROVISIONED_BY) == Some(PROVISIONER)
        && matches!(phase, Some("Released" | "Failed"))
        && policy == Some("Delete")
        && volume.metadata.deletion_timestamp.is_none()
}

/// What to do with a claim that asks for a volume.
pub(super) fn plan(
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
    node: impl FnOnce(&str) -> Option<Node>,
) -> Step {
    let name = claim_class(claim);
    let Some(class) = class else {
        return Step::Fail(format!("storageclass.storage.k8s.io {name:?} not found"));
    };
    if claim.spec.as_ref().is_some_and(|spec| spec.selector.is_some()) {
        return Step::Fail(format!(
            "failed to provision volume with StorageClass {name:?}: claim.Spec.Selector is not \
             supported"
        ));
    }
    let selected = annotation(&claim.metadata, SELECTED_NODE).filter(|node| !node.is_empty());
    let host = match selected {
        None if waits_for_consumer(Some(class)) => return Step::Wait,
        None => None,
        Some(selected) => match node(selected) {
            Some(node) => Some(hostname(&node)),
            None => {
                let text = format!("failed to get target node: node {selected:?} not found");
                return Step::Reschedule(text);
            }
        },
    };
    Step::Create(Box::new(volume(claim, class, host)))
}

fn hostname(node: &Node) -> String {
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(HOSTNAME));
    label.or(node.metadata.name.as_ref()).cloned().unwrap_or_default()
}

fn volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    host: Option<String>,
) -> PersistentVolume {
    let meta = &claim.metadata;
    let uid = meta.uid.as_deref().unwrap_or_default();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let of_claim = meta.name.as_deref().unwrap_or_default();
    let name = format!("pvc-{uid}");
    let path = format!("{ROOT}/{name}_{namespace}_{of_claim}");
    let spec = claim.spec.clone().unwrap_or_default();
    let requests = spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
    let capacity: BTreeMap<_, _> =
        requests.into_iter().filter(|(resource, _)| resource == "storage").collect();
    let affinity = host.map(|host| {
        let here = json!({"key": HOSTNAME, "operator": "In", "values": [host]});
        json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}})
    });
    let mut volume = json!({
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": capacity,
            "accessModes": spec.access_modes,
            "volumeMode": spec.volume_mode,
            "volumeAttributesClassName": spec.volume_attributes_class_name,
            "storageClassName": claim_class(claim),
            "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
            "mountOptions": class.mount_options,
            "hostPath": {"path": path, "type": "DirectoryOrCreate"},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": of_claim,
                         "namespace": namespace, "uid": uid,
                         "resourceVersion": meta.resource_version},
            "nodeAffinity": affinity,
        },
    });
    let fields = volume["spec"].as_object_mut().expect("it is an object");
    fields.retain(|_, value: &mut Value| !value.is_null());
    serde_json::from_value(volume).expect("it is a volume")
}
