//! Who names a class of volume attributes.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

/// The classes that a claim has, had, or is to have.
pub(super) fn of_claim(claim: &PersistentVolumeClaim) -> Vec<String> {
    let wanted = claim.spec.as_ref().and_then(|it| it.volume_attributes_class_name.clone());
    let status = claim.status.as_ref();
    let current = status.and_then(|it| it.current_volume_attributes_class_name.clone());
    let modified = status.and_then(|it| it.modify_volume_status.as_ref());
    let target = modified.and_then(|it| it.target_volume_attributes_class_name.clone());
    let named = [wanted, current, target].into_iter().flatten();
    named.filter(|name| !name.is_empty()).collect()
}

/// The class that a volume has.
pub(super) fn of_volume(volume: &PersistentVolume) -> Vec<String> {
    let named = volume.spec.as_ref().and_then(|it| it.volume_attributes_class_name.clone());
    named.into_iter().filter(|name| !name.is_empty()).collect()
}
