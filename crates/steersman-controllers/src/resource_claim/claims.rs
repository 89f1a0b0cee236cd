//! Lets go of one claim, if nobody needs it any more.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};
use steersman::{Context, Next, ObjectKey, Result};

use super::release::{is_pod, owning_pod, plan, users};
use super::{FINALIZER, is_done};

/// Takes away the reservations of Pods that have ended, and what nobody needs then.
pub(super) async fn reconcile(
    claim: Arc<ResourceClaim>,
    ctx: Context<ResourceClaim>,
) -> Result<Next> {
    let mut remain = Vec::new();
    for user in users(&claim) {
        if !is_pod(user) || needs(user, &ctx).await? {
            remain.push(user.clone());
        }
    }
    let owner = match owning_pod(&claim) {
        Some((name, _)) => ctx.get::<Pod>(name)?,
        None => None,
    };
    let plan = plan(&claim, remain, owner.as_ref());
    let mut claim = ResourceClaim::clone(&claim);
    if let Some(status) = plan.status {
        // Not a patch: it fails if anything changed in the meantime.
        claim = ctx.live().update_status(&status).await?;
    }
    if plan.let_go {
        let finalizers = claim.metadata.finalizers.take().into_iter().flatten();
        let others: Vec<String> = finalizers.filter(|it| it != FINALIZER).collect();
        claim.metadata.finalizers = (!others.is_empty()).then_some(others);
        claim = ctx.update(&claim).await?;
    }
    if plan.delete {
        ctx.delete(&claim).await?;
    }
    Ok(Next::Settled)
}

/// Whether a Pod still needs a claim. One that the cache does not have may be new to it: only the
/// server knows.
async fn needs(
    user: &ResourceClaimConsumerReference,
    ctx: &Context<ResourceClaim>,
) -> Result<bool> {
    let is_meant = |pod: &Pod| pod.metadata.uid.as_ref() == Some(&user.uid);
    if let Some(pod) = ctx.get::<Pod>(&user.name)? {
        return Ok(is_meant(&pod) && !is_done(&pod));
    }
    let namespace = ctx.key().namespace.as_deref().unwrap_or_default();
    let key = ObjectKey::namespaced(namespace, user.name.as_str());
    let pod = ctx.live().get::<Pod>(key).await?;
    Ok(pod.is_some_and(|pod| is_meant(&pod)))
}
