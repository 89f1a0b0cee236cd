//! The claims that a Pod uses.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

/// A claim that a Pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodClaim {
    /// Its name, in the namespace of the Pod.
    pub name: String,
    /// Whether it is made for this Pod alone, and goes with it.
    pub is_ephemeral: bool,
}

/// A claim has the name of one that is made for a Pod, and is another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)")]
pub struct NotForPod {
    /// Where both are.
    pub namespace: String,
    /// The claim.
    pub claim: String,
    /// The Pod.
    pub pod: String,
}

/// The claims that a Pod uses, in the order of its volumes.
pub fn claims_of(pod: &Pod) -> impl Iterator<Item = PodClaim> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    volumes.into_iter().flatten().filter_map(|volume| {
        if let Some(claim) = &volume.persistent_volume_claim {
            return Some(PodClaim { name: claim.claim_name.clone(), is_ephemeral: false });
        }
        volume.ephemeral.as_ref()?;
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        Some(PodClaim { name: format!("{pod}-{}", volume.name), is_ephemeral: true })
    })
}

/// Checks that a claim with the name of an ephemeral volume was made for this Pod.
///
/// # Errors
///
/// If the Pod does not control the claim.
pub fn created_for(claim: &PersistentVolumeClaim, pod: &Pod) -> Result<(), NotForPod> {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    let is_controlled =
        controller.is_some_and(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref());
    if is_controlled && claim.metadata.namespace == pod.metadata.namespace {
        return Ok(());
    }
    Err(NotForPod {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        claim: claim.metadata.name.clone().unwrap_or_default(),
        pod: pod.metadata.name.clone().unwrap_or_default(),
    })
}
