//! Which ResourceClaims a Pod uses.

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::ResourceClaim;
use steersman::ObjectKey;
use steersman::object::is_controlled_by;

/// What is known of the claim that an entry of `spec.resourceClaims` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimName<'a> {
    /// Somebody made it, and the Pod names it.
    Given(&'a str),
    /// It was made for the Pod from a template. Whoever took its name since is not it.
    Generated(&'a str),
    /// It has not been made yet.
    NotYet,
    /// None is needed.
    NotNeeded,
}

impl<'a> ClaimName<'a> {
    /// Of one entry of a Pod.
    pub(crate) fn of(pod: &'a Pod, entry: &'a PodResourceClaim) -> Self {
        if let Some(name) = &entry.resource_claim_name {
            return Self::Given(name);
        }
        let statuses =
            pod.status.as_ref().and_then(|status| status.resource_claim_statuses.as_ref());
        let mut statuses = statuses.into_iter().flatten();
        match statuses.find(|status| status.name == entry.name) {
            Some(status) => {
                status.resource_claim_name.as_deref().map_or(Self::NotNeeded, Self::Generated)
            }
            None => Self::NotYet,
        }
    }

    /// The name, if there is one.
    pub(crate) fn name(self) -> Option<&'a str> {
        match self {
            Self::Given(name) | Self::Generated(name) => Some(name),
            Self::NotYet | Self::NotNeeded => None,
        }
    }

    /// Whether this is the claim, and not another that has its name.
    pub(crate) fn is(self, claim: &ResourceClaim, pod: &Pod) -> bool {
        match self {
            Self::Given(_) => true,
            Self::Generated(_) => is_made_for(claim, pod),
            Self::NotYet | Self::NotNeeded => false,
        }
    }
}

/// The entries of a Pod.
pub(crate) fn entries(pod: &Pod) -> &[PodResourceClaim] {
    let claims = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref());
    claims.unwrap_or_default()
}

/// The keys of the claims of a Pod that have a name, also of the one that the scheduler made for its
/// extended resources.
pub(crate) fn claim_keys(pod: &Pod) -> Vec<ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let extended =
        pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
    let names = entries(pod).iter().filter_map(|entry| ClaimName::of(pod, entry).name());
    let names = names.chain(extended.map(|status| status.resource_claim_name.as_str()));
    names.map(|name| ObjectKey::namespaced(namespace, name)).collect()
}

/// Whether a claim was made for a Pod.
pub(crate) fn is_made_for(claim: &ResourceClaim, pod: &Pod) -> bool {
    claim.metadata.namespace == pod.metadata.namespace
        && is_controlled_by(&claim.metadata, pod.metadata.uid.as_deref().unwrap_or_default())
}

/// Whether a Pod may use a claim.
pub(crate) fn is_reserved_for(claim: &ResourceClaim, pod: &Pod) -> bool {
    let reserved = claim.status.as_ref().and_then(|status| status.reserved_for.as_ref());
    let mut reserved = reserved.into_iter().flatten();
    reserved.any(|user| Some(&user.uid) == pod.metadata.uid.as_ref())
}
