//! Volumes, claims, classes and what provides them.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{items, len, or_none, printed, text, texts};
use super::{Cell, Column, age};

pub(super) fn columns(group: &str, kind: &str) -> Option<Vec<Column>> {
    Some(match (group, kind) {
        ("", "PersistentVolume") => vec![
            Column::field("Capacity", "spec.capacity.storage", "0"),
            Column::text("Access Modes", |pv, _| access_modes(&pv["spec"]["accessModes"])),
            Column::field("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", ""),
            Column::text("Status", phase),
            Column::text("Claim", claim),
            Column::text("StorageClass", claimed_class),
            Column::field("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
            Column::field("Reason", "status.reason", ""),
            age(),
            Column::field("VolumeMode", "spec.volumeMode", "<unset>").wide(),
        ],
        ("", "PersistentVolumeClaim") => vec![
            Column::text("Status", phase),
            Column::field("Volume", "spec.volumeName", ""),
            Column::text("Capacity", |pvc, _| {
                bound(pvc, capacity(&pvc["status"]["capacity"]["storage"]))
            }),
            Column::text("Access Modes", |pvc, _| {
                bound(pvc, access_modes(&pvc["status"]["accessModes"]))
            }),
            Column::text("StorageClass", claimed_class),
            Column::field("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
            age(),
            Column::field("VolumeMode", "spec.volumeMode", "<unset>").wide(),
        ],
        ("storage.k8s.io", "StorageClass") => vec![
            Column::text("Name", class_name).called_name(),
            Column::field("Provisioner", "provisioner", ""),
            Column::field("ReclaimPolicy", "reclaimPolicy", "Delete"),
            Column::field("VolumeBindingMode", "volumeBindingMode", "Immediate"),
            Column::switch("AllowVolumeExpansion", "allowVolumeExpansion").called_text(),
            age(),
        ],
        ("storage.k8s.io", "VolumeAttributesClass") => {
            vec![Column::field("DriverName", "driverName", ""), age()]
        }
        ("storage.k8s.io", "VolumeAttachment") => vec![
            Column::field("Attacher", "spec.attacher", "").called_name(),
            Column::field("PV", "spec.source.persistentVolumeName", ""),
            Column::field("Node", "spec.nodeName", ""),
            Column::switch("Attached", "status.attached"),
            age(),
        ],
        ("storage.k8s.io", "CSINode") => {
            vec![Column::count("Drivers", |o, _| len(&o["spec"]["drivers"]).into()), age()]
        }
        ("storage.k8s.io", "CSIDriver") => csi_driver(),
        ("resource.k8s.io", "ResourceClaim") => vec![Column::text("State", claim_state), age()],
        ("resource.k8s.io", "ResourceSlice") => vec![
            Column::field("Node", "spec.nodeName", ""),
            Column::field("Driver", "spec.driver", ""),
            Column::field("Pool", "spec.pool.name", ""),
            age(),
        ],
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => vec![age()],
        _ => return None,
    })
}

fn csi_driver() -> Vec<Column> {
    vec![
        Column {
            value: Cell::Switch("spec.attachRequired", true),
            ..Column::switch("AttachRequired", "spec.attachRequired")
        },
        Column::switch("PodInfoOnMount", "spec.podInfoOnMount"),
        Column::switch("StorageCapacity", "spec.storageCapacity"),
        Column::text("TokenRequests", |driver, _| match &driver["spec"]["tokenRequests"] {
            Value::Null => "<unset>".into(),
            requests => super::cells::joined(requests, "audience").into(),
        }),
        Column::switch("RequiresRepublish", "spec.requiresRepublish"),
        Column::text("Modes", |driver, _| or_none(&texts(&driver["spec"]["volumeLifecycleModes"]))),
        age(),
    ]
}

/// `RWO,ROX`: each mode by its initials, in the order kubectl has them.
fn access_modes(modes: &Value) -> Value {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| items(modes).iter().any(|m| m == mode);
    let short: Vec<_> = known.iter().filter(|(mode, _)| has(mode)).map(|(_, s)| *s).collect();
    short.join(",").into()
}

fn phase(object: &Value, _: Timestamp) -> Value {
    if object["metadata"]["deletionTimestamp"].is_null() {
        text(&object["status"]["phase"]).into()
    } else {
        "Terminating".into()
    }
}

/// What is only true of a claim that has its volume.
fn bound(claim: &Value, value: Value) -> Value {
    if text(&claim["spec"]["volumeName"]).is_empty() { "".into() } else { value }
}

fn capacity(storage: &Value) -> Value {
    if storage.is_null() { "0".into() } else { printed(storage).into() }
}

fn claim(pv: &Value, _: Timestamp) -> Value {
    let claim = &pv["spec"]["claimRef"];
    if claim.is_null() {
        return "".into();
    }
    format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])).into()
}

/// The class of a volume or claim; an annotation of old counts more than the field.
fn claimed_class(object: &Value, _: Timestamp) -> Value {
    let old = "volume.beta.kubernetes.io/storage-class";
    match &object["metadata"]["annotations"][old] {
        Value::String(class) => class.as_str().into(),
        _ => text(&object["spec"]["storageClassName"]).into(),
    }
}

fn class_name(class: &Value, _: Timestamp) -> Value {
    let annotations = &class["metadata"]["annotations"];
    let default = annotations["storageclass.kubernetes.io/is-default-class"] == "true"
        || annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true";
    let name = text(&class["metadata"]["name"]);
    if default { format!("{name} (default)").into() } else { name.into() }
}

fn claim_state(claim: &Value, _: Timestamp) -> Value {
    let deleted = !claim["metadata"]["deletionTimestamp"].is_null();
    let allocated = !claim["status"]["allocation"].is_null();
    let reserved = allocated && len(&claim["status"]["reservedFor"]) > 0;
    let states = [
        (deleted, "deleted"),
        (!deleted && !allocated, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    let shown: Vec<_> = states.iter().filter(|(holds, _)| *holds).map(|(_, s)| *s).collect();
    shown.join(",").into()
}
