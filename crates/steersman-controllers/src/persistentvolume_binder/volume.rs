//! What happens to a volume.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use steersman::volumes::{PROVISIONED_BY, annotation, volume_name};

use super::reclaim::{Reclaim, reclaim};

/// What happens next to a volume.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum VolumeStep {
    /// It is in this phase.
    Phase(&'static str),
    /// Its claim will be bound to it when that is looked at.
    Settled,
    /// Its claim cannot be bound to it.
    Mismatch,
    /// Its claim is gone.
    Release(Reclaim),
    /// Its claim is bound to another volume.
    Unbind,
}

/// What to do with a volume; the claim is the one that it names, if there is one of that name.
pub(super) fn plan(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> VolumeStep {
    let spec = volume.spec.as_ref();
    let Some(claimant) = spec.and_then(|spec| spec.claim_ref.as_ref()) else {
        return VolumeStep::Phase("Available");
    };
    let Some(uid) = claimant.uid.as_ref().filter(|uid| !uid.is_empty()) else {
        return VolumeStep::Phase("Available"); // reserved
    };
    // Another with the same name is not the one that it was bound to.
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_ref() == Some(uid)) else {
        return VolumeStep::Release(reclaim(volume));
    };
    if volume_name(claim).is_empty() {
        let mode = |mode: Option<&String>| mode.map_or("Filesystem", String::as_str).to_owned();
        let has = mode(spec.and_then(|spec| spec.volume_mode.as_ref()));
        let wants = mode(claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_ref()));
        return if has == wants { VolumeStep::Settled } else { VolumeStep::Mismatch };
    }
    if Some(volume_name(claim)) == volume.metadata.name.as_deref() {
        return VolumeStep::Phase("Bound");
    }
    let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let is_provisioned = annotation(&volume.metadata, PROVISIONED_BY).is_some();
    match is_provisioned && policy == Some("Delete") {
        true => VolumeStep::Release(reclaim(volume)), // made for this claim, and not needed
        false => VolumeStep::Unbind,
    }
}
