//! The Pod of one run.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::json;
use steersman::Result;

use crate::Backup;

/// The label that all Pods of Backups have; its value is the name of the Backup.
pub const LABEL: &str = "backup.example.com/backup";

/// How long the name of a Backup may be, so that those of its Pods are host names.
pub const NAME_MAX: usize = 63 - "-20300101-0800".len();

/// The Pod for a due time. It is named after it, so there cannot be two.
pub fn pod_for(backup: &Backup, due: Timestamp) -> Result<Pod> {
    let name = backup.name_any();
    let container = json!({
        "name": "backup",
        "image": backup.spec.image,
        "env": [{"name": "BUCKET", "value": backup.bucket()}],
        "envFrom": [{"secretRef": {"name": backup.secret()}}],
    });
    Ok(serde_json::from_value(json!({
        "metadata": {
            "name": format!("{name}-{}", due.strftime("%Y%m%d-%H%M")),
            "labels": {LABEL: name},
        },
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }))?)
}
