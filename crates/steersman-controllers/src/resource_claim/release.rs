//! What becomes of a claim whose users have ended.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};
use steersman::object::controller_of;

use super::{FINALIZER, is_allocated, is_done};

/// What is to be done with a claim, in this order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Its status is to be written as it is here.
    pub(super) status: Option<ResourceClaim>,
    /// It is held no longer, once that is written.
    pub(super) let_go: bool,
    /// It is to be deleted, since its Pod needs it no longer.
    pub(super) delete: bool,
}

/// What is to be done with a claim of which these users remain. What is not used any more is
/// deallocated, so that it can be allocated again where the next user runs; a claim that was never
/// used stays as it is.
pub(super) fn plan(
    claim: &ResourceClaim,
    remain: Vec<ResourceClaimConsumerReference>,
    owner: Option<&Arc<Pod>>,
) -> Plan {
    let mut plan = Plan::default();
    let is_held = claim.metadata.finalizers.iter().flatten().any(|it| it == FINALIZER);
    let is_unused = remain.is_empty();
    let allocated = is_allocated(claim);
    if remain.len() < users(claim).len() {
        let deallocated = is_unused && is_held;
        plan.status = Some(written(claim, remain, deallocated));
        plan.let_go = is_held && (deallocated || !allocated);
    } else if is_held && is_unused && claim.metadata.deletion_timestamp.is_some() {
        plan.status = allocated.then(|| written(claim, remain, true));
        plan.let_go = true;
    }
    plan.delete = is_unused
        && claim.metadata.deletion_timestamp.is_none()
        && owner.is_some_and(|pod| {
            let (_, uid) = owning_pod(claim).unwrap_or_default();
            pod.metadata.uid.as_deref() != Some(uid) || is_done(pod)
        });
    plan
}

/// A claim with this status.
fn written(
    claim: &ResourceClaim,
    remain: Vec<ResourceClaimConsumerReference>,
    deallocated: bool,
) -> ResourceClaim {
    let mut written = claim.clone();
    let status = written.status.get_or_insert_default();
    status.reserved_for = (!remain.is_empty()).then_some(remain);
    if deallocated {
        status.allocation = None;
    }
    written
}

/// Who may use a claim.
pub(super) fn users(claim: &ResourceClaim) -> &[ResourceClaimConsumerReference] {
    let users = claim.status.as_ref().and_then(|status| status.reserved_for.as_deref());
    users.unwrap_or_default()
}

/// Whether a user is a Pod; of others nobody here knows whether they need the claim.
pub(super) fn is_pod(user: &ResourceClaimConsumerReference) -> bool {
    user.api_group.as_deref().unwrap_or_default().is_empty() && user.resource == "pods"
}

/// Name and uid of the Pod for which a claim was made.
pub(super) fn owning_pod(claim: &ResourceClaim) -> Option<(&str, &str)> {
    let owner = controller_of(&claim.metadata)?;
    let is_pod = owner.kind == "Pod" && owner.api_version == "v1";
    is_pod.then_some((owner.name.as_str(), owner.uid.as_str()))
}
