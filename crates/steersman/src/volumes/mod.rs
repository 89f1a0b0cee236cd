//! Which volume may serve a claim, and which claims a Pod has: what the controller that binds volumes
//! and the scheduler must answer alike, and whoever provisions volumes itself.

mod bound;
mod matching;
mod pod_claims;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ObjectMeta;

pub use bound::{bound_to_claim, is_bound_to_claim};
pub use matching::{Search, capacity, find_volume, is_allowed_on, request, unsuitable};
pub use pod_claims::{NotForPod, PodClaim, claims_of, created_for};

/// On a claim: its binding has been completed once.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On a claim or a volume: the binding was made by the controller, and not by a user.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a claim: the node for which a volume is to be provisioned.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim: who is to provision a volume.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The same, as it was called before.
pub const STORAGE_PROVISIONER_BETA: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// On a volume: who provisioned it.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The provisioner of classes whose volumes somebody makes by hand.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// The older way to name a class, which goes before the field.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// An annotation of an object.
pub fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The class that a claim asks for; empty if it asks for none.
pub fn claim_class(claim: &PersistentVolumeClaim) -> &str {
    let field = || claim.spec.as_ref()?.storage_class_name.as_deref();
    annotation(&claim.metadata, CLASS).or_else(field).unwrap_or_default()
}

/// Whether a claim says something about its class, be it that it wants none.
pub fn names_class(claim: &PersistentVolumeClaim) -> bool {
    let field = claim.spec.as_ref().is_some_and(|spec| spec.storage_class_name.is_some());
    field || annotation(&claim.metadata, CLASS).is_some()
}

/// The class of a volume; empty if it has none.
pub fn volume_class(volume: &PersistentVolume) -> &str {
    let field = || volume.spec.as_ref()?.storage_class_name.as_deref();
    annotation(&volume.metadata, CLASS).or_else(field).unwrap_or_default()
}

/// The volume that a claim names; empty if it names none.
pub fn volume_name(claim: &PersistentVolumeClaim) -> &str {
    let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
    name.unwrap_or_default()
}

/// Whether a claim is bound, and its binding complete.
pub fn is_fully_bound(claim: &PersistentVolumeClaim) -> bool {
    !volume_name(claim).is_empty() && annotation(&claim.metadata, BIND_COMPLETED).is_some()
}

/// Whether claims of this class are bound only when a Pod that uses them is scheduled.
pub fn waits_for_consumer(class: Option<&StorageClass>) -> bool {
    let mode = class.and_then(|class| class.volume_binding_mode.as_deref());
    mode == Some("WaitForFirstConsumer")
}
