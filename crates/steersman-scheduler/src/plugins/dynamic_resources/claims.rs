//! The claims of a Pod.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::ResourceClaim;
use steersman::ObjectKey;
use steersman::object::is_controlled_by;

use crate::framework::Lister;

/// So many may use a claim at the same time.
const USERS_MAX: usize = 256;

/// The claims of a Pod that are needed; otherwise why it has to wait for one.
pub(super) fn claims_of(pod: &Pod, lister: &dyn Lister) -> Result<Vec<Arc<ResourceClaim>>, String> {
    let entries = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref());
    let mut claims = Vec::new();
    for entry in entries.unwrap_or_default() {
        let Some(named) = Named::of(pod, entry)? else { continue };
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let key = ObjectKey::namespaced(namespace, named.name);
        let claim = lister
            .resource_claim(&key)
            .ok_or_else(|| format!("could not find ResourceClaim {:?}", key.to_string()))?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("resourceclaim {:?} is being deleted", named.name));
        }
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if named.is_generated && !is_controlled_by(&claim.metadata, uid) {
            let pod = ObjectKey::of(pod);
            return Err(format!(
                "ResourceClaim {key} was not created for Pod {pod} (Pod is not owner)"
            ));
        }
        claims.push(claim);
    }
    Ok(claims)
}

/// What the claim of an entry is called.
struct Named<'a> {
    name: &'a str,
    /// It was made for the Pod: another of its name is not it.
    is_generated: bool,
}

impl<'a> Named<'a> {
    /// None if no claim is needed.
    fn of(pod: &'a Pod, entry: &'a PodResourceClaim) -> Result<Option<Self>, String> {
        if let Some(name) = &entry.resource_claim_name {
            return Ok(Some(Self { name, is_generated: false }));
        }
        let key = ObjectKey::of(pod);
        if entry.resource_claim_template_name.is_none() {
            return Err(format!(
                "pod {:?}, spec.resourceClaim {:?}: none of the supported fields are set",
                key.to_string(),
                entry.name
            ));
        }
        let statuses = pod.status.as_ref().and_then(|it| it.resource_claim_statuses.as_ref());
        let mut statuses = statuses.into_iter().flatten();
        let status = statuses
            .find(|status| status.name == entry.name)
            .ok_or_else(|| format!("pod {:?}: ResourceClaim not created yet", key.to_string()))?;
        let name = status.resource_claim_name.as_deref();
        Ok(name.map(|name| Self { name, is_generated: true }))
    }
}

/// Whether a Pod may use a claim.
pub(super) fn is_reserved_for(claim: &ResourceClaim, uid: &str) -> bool {
    let users = claim.status.as_ref().and_then(|status| status.reserved_for.as_ref());
    users.into_iter().flatten().any(|user| user.uid == uid)
}

/// Whether so many may use a claim that a Pod cannot be one of them.
pub(super) fn is_full_for(claim: &ResourceClaim, uid: &str) -> bool {
    let users = claim.status.as_ref().and_then(|status| status.reserved_for.as_ref());
    users.is_some_and(|users| users.len() >= USERS_MAX) && !is_reserved_for(claim, uid)
}

/// Whether nobody but a Pod may use a claim.
pub(super) fn is_free_but_for(claim: &ResourceClaim, uid: &str) -> bool {
    let users = claim.status.as_ref().and_then(|status| status.reserved_for.as_ref());
    users.is_none_or(|users| users.is_empty() || matches!(&users[..], [user] if user.uid == uid))
}
