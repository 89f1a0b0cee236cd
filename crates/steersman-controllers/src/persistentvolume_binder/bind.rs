//! What claims and volumes look like when they are bound, and when they are not any more.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use steersman::volumes::{BIND_COMPLETED, BOUND_BY_CONTROLLER, volume_name};
use steersman_rules::quantity::Quantity;

/// On a volume that is being resized: the capacity that its file system still has.
const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";

/// The claim as it is when it is bound to this volume; nothing if it is so already.
pub(super) fn bound_claim(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Option<PersistentVolumeClaim> {
    let mut bound = claim.clone();
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let annotations = bound.metadata.annotations.get_or_insert_default();
    if volume_name(claim) != name {
        annotations.entry(BOUND_BY_CONTROLLER.into()).or_insert_with(|| "yes".into());
        bound.spec.get_or_insert_default().volume_name = Some(name.to_owned());
    }
    annotations.entry(BIND_COMPLETED.into()).or_insert_with(|| "yes".into());
    (bound != *claim).then_some(bound)
}

/// The status of a claim in this phase, bound to this volume if to any; nothing if it is so already.
pub(super) fn claim_status(
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
) -> Option<PersistentVolumeClaimStatus> {
    let old = claim.status.clone().unwrap_or_default();
    let mut new = old.clone();
    new.phase = Some(phase.to_owned());
    match volume.and_then(|volume| volume.spec.as_ref().map(|spec| (volume, spec))) {
        None => {
            new.access_modes = None;
            new.capacity = None;
            new.current_volume_attributes_class_name = None;
        }
        Some((volume, spec)) => {
            new.access_modes = spec.access_modes.clone();
            // Later somebody else may say that the file system is smaller than the volume.
            if old.phase.as_deref() != Some(phase) {
                new.capacity = capacity(volume, old.capacity);
                new.current_volume_attributes_class_name =
                    spec.volume_attributes_class_name.clone();
            }
        }
    }
    (new != claim.status.clone().unwrap_or_default()).then_some(new)
}

fn capacity(
    volume: &PersistentVolume,
    old: Option<BTreeMap<String, Text>>,
) -> Option<BTreeMap<String, Text>> {
    let annotations = volume.metadata.annotations.as_ref();
    let before = annotations.and_then(|annotations| annotations.get(PRE_RESIZE_CAPACITY));
    if let Some(before) = before.filter(|text| Quantity::parse(text).is_ok()) {
        let mut capacity = old.unwrap_or_default();
        capacity.insert("storage".into(), Text(before.clone()));
        return Some(capacity);
    }
    volume.spec.as_ref()?.capacity.clone()
}

/// The volume without the claim that it was bound to; what a user has reserved stays reserved.
pub(super) fn unbound_volume(volume: &PersistentVolume) -> PersistentVolume {
    let mut unbound = volume.clone();
    let spec = unbound.spec.get_or_insert_default();
    let annotations = unbound.metadata.annotations.as_mut();
    let by_controller = annotations.and_then(|all| all.remove(BOUND_BY_CONTROLLER)).is_some();
    if by_controller {
        spec.claim_ref = None;
    } else if let Some(claim) = &mut spec.claim_ref {
        claim.uid = None;
    }
    unbound.metadata.annotations = unbound.metadata.annotations.filter(|all| !all.is_empty());
    unbound
}

/// The volume in this phase; nothing if it is in it already.
pub(super) fn in_phase(
    volume: &PersistentVolume,
    phase: &str,
    message: &str,
) -> Option<PersistentVolume> {
    let now = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if now == Some(phase) {
        return None;
    }
    let mut changed = volume.clone();
    let status = changed.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    status.message = Some(message.to_owned()).filter(|message| !message.is_empty());
    Some(changed)
}
