//! The device taint eviction controller: deletes Pods that use a device with a `NoExecute` taint that
//! their claim does not tolerate, or tolerates only for a time.
//!
//! [`plan`] says when. Taints stand in ResourceSlices; DeviceTaintRules, an API that Kubernetes 1.36
//! does not serve by default, are not known here either.

mod metrics;
mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use steersman::controller::MapContext;
use steersman::handler::Request;
use steersman::{Controller, Metrics, ObjectKey, Result, predicate};

use crate::pod::node_name;
use crate::pod_resource_claims::entries;
use plan::results;
use reconcile::{Evictor, Memory};

/// The controller, which tells of Pods by this name.
pub(crate) const NAME: &str = "device-taint-eviction-controller";

/// The device taint eviction controller.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let memory = Memory::default();
    let forgetful = memory.clone();
    let used = |old: &Pod, new: &Pod| node_name(old) != node_name(new) || !names_alike(old, new);
    Controller::of::<Pod>()
        .named(NAME)
        .when(predicate::funcs().on_update(used))
        .only(|pod| !entries(pod).is_empty())
        .watches(users)
        .watches_async(users_of_pool)
        .on_deleted(move |gone, _| {
            forgetful.forget(&gone.key);
            std::future::ready(Ok(()))
        })
        .concurrency(8)
        .reconcile(Evictor { memory, metrics: metrics.families() })
}

/// Whether two states of a Pod call its claims the same.
fn names_alike(one: &Pod, other: &Pod) -> bool {
    let names = |pod: &Pod| pod.status.as_ref().and_then(|it| it.resource_claim_statuses.clone());
    names(one) == names(other)
}

/// The Pods that may use a claim.
fn users(claim: &ResourceClaim) -> Vec<ObjectKey> {
    let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
    let users = claim.status.as_ref().and_then(|status| status.reserved_for.as_ref());
    let pods = users.into_iter().flatten().filter(|user| user.resource == "pods");
    pods.map(|user| ObjectKey::namespaced(namespace, user.name.as_str())).collect()
}

/// The Pods that use devices of a slice's pool: a new slice may have replaced others of it.
async fn users_of_pool(slice: Arc<ResourceSlice>, ctx: MapContext) -> Result<Vec<Request>> {
    let (driver, pool) = (&slice.spec.driver, &slice.spec.pool.name);
    let claims = ctx.cache::<ResourceClaim>()?.list();
    let uses = |claim: &&Arc<ResourceClaim>| {
        results(claim).iter().any(|device| device.driver == *driver && device.pool == *pool)
    };
    let pods = claims.iter().filter(uses).flat_map(|claim| users(claim));
    Ok(pods.map(Request::new).collect())
}
