//! The device taint eviction controller: deletes Pods that use a device with a `NoExecute` taint that
//! their claim does not tolerate, or tolerates only for a time.
//!
//! [`plan`] says when. Taints stand in ResourceSlices and, where that API is served, in DeviceTaintRules,
//! whose status says how far it is: [`rule_status`].

mod memory;
mod metrics;
mod plan;
mod reconcile;
mod rule_reconcile;
mod rule_status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1beta2::DeviceTaintRule;
use steersman::controller::MapContext;
use steersman::handler::Request;
use steersman::{Controller, Metrics, ObjectKey, Result, predicate};

use crate::pod::node_name;
use crate::pod_resource_claims::entries;
use memory::Memory;
use plan::results;
use reconcile::Evictor;
use rule_reconcile::Reporter;

/// The controller, which tells of Pods by this name.
pub(crate) const NAME: &str = "device-taint-eviction-controller";
/// Its part that tells of rules what they do.
pub(crate) const RULES: &str = "device-taint-rule-status-controller";

/// The device taint eviction controller, for a cluster without rules.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    evictor(&Memory::default(), metrics, false)
}

/// The same for a cluster with rules, and what tells of these.
pub(crate) fn with_rules(metrics: &Metrics) -> [Controller; 2] {
    let memory = Memory::default();
    let forgetful = memory.clone();
    let reporter = Controller::of::<DeviceTaintRule>()
        .named(RULES)
        .when(predicate::generation_changed())
        .reads::<Pod>()
        .reads::<ResourceClaim>()
        .reads::<ResourceSlice>()
        .source(memory.rules.source("evictions"))
        .on_deleted(move |gone, _| {
            forgetful.forget_rule(&gone.key.name);
            std::future::ready(Ok(()))
        })
        .reconcile(Reporter { memory: memory.clone() });
    [evictor(&memory, metrics, true), reporter]
}

fn evictor(memory: &Memory, metrics: &Metrics, has_rules: bool) -> Controller {
    let (memory, forgetful) = (memory.clone(), memory.clone());
    let used = |old: &Pod, new: &Pod| node_name(old) != node_name(new) || !names_alike(old, new);
    let builder = Controller::of::<Pod>()
        .named(NAME)
        .when(predicate::funcs().on_update(used))
        .only(|pod| !entries(pod).is_empty())
        .watches(users)
        .watches_async(users_of_pool);
    let builder = if has_rules { builder.watches_async(all_users) } else { builder };
    builder
        .on_deleted(move |gone, _| {
            forgetful.forget(&gone.key);
            std::future::ready(Ok(()))
        })
        .concurrency(8)
        .reconcile(Evictor { memory, metrics: metrics.families(), has_rules })
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

/// The Pods that use any device: a rule that changes may have been for others before.
async fn all_users(_: Arc<DeviceTaintRule>, ctx: MapContext) -> Result<Vec<Request>> {
    let claims = ctx.cache::<ResourceClaim>()?.list();
    let allocated = claims.iter().filter(|claim| !results(claim).is_empty());
    Ok(allocated.flat_map(|claim| users(claim)).map(Request::new).collect())
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
