//! Which claims ask for more, and what they are told.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use steersman::volumes::request;
use steersman_rules::quantity::Quantity;

/// Whether a change of a claim has made it ask for more.
pub(super) fn asks_for_more(old: &PersistentVolumeClaim, new: &PersistentVolumeClaim) -> bool {
    request(new) > request(old) || capacity(new) > capacity(old)
}

/// Whether a claim that is bound asks for more than it has.
pub(super) fn wants_more(claim: &PersistentVolumeClaim) -> bool {
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Bound") && request(claim) > capacity(claim)
}

fn capacity(claim: &PersistentVolumeClaim) -> Quantity {
    let status = claim.status.as_ref();
    let text = status.and_then(|status| status.capacity.as_ref()?.get("storage"));
    text.and_then(|text| Quantity::parse(text.0.trim()).ok()).unwrap_or(Quantity::ZERO)
}

/// What a claim with this volume is told.
pub(super) fn wording(volume: &PersistentVolume) -> String {
    let Some(spec) = &volume.spec else { return String::new() };
    let moved = [
        (spec.aws_elastic_block_store.is_some(), "kubernetes.io/aws-ebs"),
        (spec.azure_disk.is_some(), "kubernetes.io/azure-disk"),
        (spec.azure_file.is_some(), "kubernetes.io/azure-file"),
        (spec.cinder.is_some(), "kubernetes.io/cinder"),
        (spec.gce_persistent_disk.is_some(), "kubernetes.io/gce-pd"),
        (spec.portworx_volume.is_some(), "kubernetes.io/portworx-volume"),
        (spec.vsphere_volume.is_some(), "kubernetes.io/vsphere-volume"),
    ];
    match moved.into_iter().find(|(is_it, _)| *is_it) {
        Some((_, name)) => format!(
            "CSI migration enabled for {name}; waiting for external resizer to expand the pvc"
        ),
        None => "waiting for an external controller to expand this PVC".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(phase: &str, request: &str, capacity: &str) -> PersistentVolumeClaim {
        let claim = json!({
            "spec": {"resources": {"requests": {"storage": request}}},
            "status": {"phase": phase, "capacity": {"storage": capacity}},
        });
        serde_json::from_value(claim).unwrap()
    }

    #[test]
    fn a_bound_claim_that_asks_for_more_is_told_who_gives_it() {
        for (phase, request, capacity, more) in [
            ("Bound", "2Gi", "1Gi", true),
            ("Bound", "1024Mi", "1Gi", false),
            ("Bound", "1Gi", "2Gi", false),
            ("Pending", "2Gi", "1Gi", false),
        ] {
            assert_eq!(wants_more(&claim(phase, request, capacity)), more, "{phase} {request}");
        }
        let (old, new) = (claim("Bound", "1Gi", "1Gi"), claim("Bound", "2Gi", "1Gi"));
        assert!(asks_for_more(&old, &new));
        assert!(!asks_for_more(&new, &new));
        let told = |source: Value| {
            let volume = serde_json::from_value(json!({"spec": source})).unwrap();
            wording(&volume)
        };
        let plain = "waiting for an external controller to expand this PVC";
        assert_eq!(told(json!({"csi": {"driver": "d", "volumeHandle": "h"}})), plain);
        let moved = "CSI migration enabled for kubernetes.io/gce-pd; waiting for external resizer to expand \
             the pvc";
        assert_eq!(told(json!({"gcePersistentDisk": {"pdName": "d"}})), moved);
    }
}
