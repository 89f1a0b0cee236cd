//! A Pod goes only where its volumes can be used.

mod binding;
mod limits;
mod pod_volumes;
mod restrictions;
mod zone;

pub(crate) use binding::VolumeBinding;
pub(crate) use limits::NodeVolumeLimits;
pub(crate) use restrictions::VolumeRestrictions;
pub(crate) use zone::VolumeZone;

use k8s_openapi::api::core::v1::{Pod, Volume};
use steersman::ObjectKey;
use steersman::volumes::claims_of;

use crate::framework::{Cycle, Object, PodInfo};

/// The claims that the volumes of a Pod name; not those that are made for it.
fn named_claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let claims = volumes.filter_map(|volume: &Volume| volume.persistent_volume_claim.as_ref());
    claims.map(|claim| claim.claim_name.as_str())
}

fn claim_key(pod: &PodInfo, claim: &str) -> ObjectKey {
    ObjectKey::namespaced(pod.namespace(), claim)
}

/// Whether an event is about a claim that a Pod uses.
fn is_claim_of(pod: &Pod, object: &Object) -> bool {
    let Object::Claim(change) = object else { return false };
    change.either().is_some_and(|claim| {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        claim.metadata.namespace == pod.metadata.namespace
            && claims_of(pod).any(|used| used.name == name)
    })
}

/// Whether a Pod uses no claims, as most do.
fn has_no_claims(cycle: &Cycle<'_>) -> bool {
    cycle.info.claims.is_empty()
}
