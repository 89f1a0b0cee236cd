//! One look at one Pod that uses devices: lets it stay, waits, or deletes it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1beta2::DeviceTaintRule;
use kube::api::Patch;
use serde_json::json;
use steersman::events::NewEvent;
use steersman::{Context, Next, ObjectKey, Reconciler, Result, clock};

use super::memory::Memory;
use super::metrics::EvictionMetrics;
use super::plan::{Around, Eviction, eviction};
use crate::disruption_target::DisruptionTarget;

/// Why a Pod goes, as its condition says.
const DELETION: DisruptionTarget = DisruptionTarget {
    reason: "DeletionByDeviceTaintManager",
    message: "Device Taint manager: deleting due to NoExecute taint",
};
/// Why people are told of Pods.
const REASON: &str = "DeviceTaintManagerEviction";

/// Deletes Pods.
pub(super) struct Evictor {
    pub(super) memory: Memory,
    pub(super) metrics: EvictionMetrics,
    /// Whether there are rules that taint devices.
    pub(super) has_rules: bool,
}

impl Reconciler<Pod> for Evictor {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        let key = ctx.key();
        if pod.metadata.deletion_timestamp.is_some() {
            self.memory.forget(key);
            return Ok(Next::Settled); // it goes already
        }
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let claims = ctx.cache::<ResourceClaim>()?;
        let slices = ctx.cache::<ResourceSlice>()?.list();
        let rules = match self.has_rules {
            true => ctx.cache::<DeviceTaintRule>()?.list(),
            false => Vec::new(),
        };
        let claim = |name: &str| claims.get(&ObjectKey::namespaced(namespace, name));
        let Some(eviction) =
            eviction(&pod, &Around { claim: &claim, slices: &slices, rules: &rules })
        else {
            if self.memory.forget(key) {
                ctx.event(NewEvent::normal(REASON).note("Cancelling deletion"));
            }
            return Ok(Next::Settled);
        };
        self.memory.schedule(key, &eviction.rules, clock::now());
        match Duration::try_from(eviction.at.duration_since(clock::now())) {
            Ok(wait) if !wait.is_zero() => Ok(Next::After(wait)),
            _ => self.evict(&pod, &eviction, &ctx).await,
        }
    }
}

impl Evictor {
    /// Says in the Pod's status why it goes, and deletes it, unless another has its name by now.
    async fn evict(&self, pod: &Pod, eviction: &Eviction, ctx: &Context<Pod>) -> Result<Next> {
        let live = ctx.live().get::<Pod>(ctx.key().clone()).await?;
        let live = live.filter(|live| live.metadata.uid == pod.metadata.uid);
        let Some(live) = live.filter(|live| live.metadata.deletion_timestamp.is_none()) else {
            self.memory.forget(ctx.key());
            return Ok(Next::Settled);
        };
        ctx.event(NewEvent::normal(REASON).note("Marking for deletion"));
        if let Some(condition) = DELETION.condition(&live, &clock::now_time()) {
            let status = json!({"conditions": [condition]});
            let patch = json!({"metadata": {"uid": live.metadata.uid}, "status": status});
            ctx.patch_status::<Pod, _>(ctx.key(), &Patch::Strategic(patch)).await?;
        }
        ctx.delete(&live).await?;
        self.metrics.deleted(eviction.at, clock::now());
        self.memory.evicted(ctx.key(), &eviction.rules, clock::now());
        Ok(Next::Settled)
    }
}
