//! A volume that is bound to a claim.

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};

use super::BOUND_BY_CONTROLLER;

/// Whether a volume is bound to this claim, or reserved for it by its name.
pub fn is_bound_to_claim(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = claim_of(volume) else { return false };
    let uid = reference.uid.as_deref().filter(|uid| !uid.is_empty());
    reference.name == claim.metadata.name
        && reference.namespace == claim.metadata.namespace
        && uid.is_none_or(|uid| claim.metadata.uid.as_deref() == Some(uid))
}

/// The volume as it is when it is bound to this claim; nothing if it is so already.
pub fn bound_to_claim(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Option<PersistentVolume> {
    let meta = &claim.metadata;
    let is_complete = claim_of(volume).is_some_and(|reference| {
        reference.name == meta.name
            && reference.namespace == meta.namespace
            && reference.uid == meta.uid
    });
    if is_complete {
        return None;
    }
    let mut bound = volume.clone();
    let spec = bound.spec.get_or_insert_default();
    spec.claim_ref = Some(ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("PersistentVolumeClaim".into()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        resource_version: meta.resource_version.clone(),
        uid: meta.uid.clone(),
        field_path: None,
    });
    // What a user has reserved stays the user's.
    if !is_bound_to_claim(volume, claim) {
        let annotations = bound.metadata.annotations.get_or_insert_default();
        annotations.entry(BOUND_BY_CONTROLLER.into()).or_insert_with(|| "yes".into());
    }
    Some(bound)
}

fn claim_of(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}
