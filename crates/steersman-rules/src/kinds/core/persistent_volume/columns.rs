//! What `kubectl get` shows of volumes, some of which it also shows of claims.

use jiff::Timestamp;
use serde_json::Value;

use crate::table::cells::{items, text};
use crate::table::{Column, age};

pub(super) fn columns() -> Vec<Column> {
    vec![
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
    ]
}

/// `RWO,ROX`: each mode by its initials, in the order kubectl has them.
pub(in crate::kinds::core) fn access_modes(modes: &Value) -> Value {
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

/// The phase of a volume or claim, unless it is about to go.
pub(in crate::kinds::core) fn phase(object: &Value, _: Timestamp) -> Value {
    if object["metadata"]["deletionTimestamp"].is_null() {
        text(&object["status"]["phase"]).into()
    } else {
        "Terminating".into()
    }
}

/// The class of a volume or claim; an annotation of old counts more than the field.
pub(in crate::kinds::core) fn claimed_class(object: &Value, _: Timestamp) -> Value {
    let old = "volume.beta.kubernetes.io/storage-class";
    match &object["metadata"]["annotations"][old] {
        Value::String(class) => class.as_str().into(),
        _ => text(&object["spec"]["storageClassName"]).into(),
    }
}

fn claim(pv: &Value, _: Timestamp) -> Value {
    let claim = &pv["spec"]["claimRef"];
    if claim.is_null() {
        return "".into();
    }
    format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])).into()
}
