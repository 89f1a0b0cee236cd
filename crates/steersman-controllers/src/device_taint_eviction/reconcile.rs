//! One look at one Pod that uses devices: lets it stay, waits, or deletes it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::api::Patch;
use serde_json::json;
use steersman::events::NewEvent;
use steersman::{Context, Next, ObjectKey, Reconciler, Result, clock};

use super::metrics::EvictionMetrics;
use super::plan::{Around, due};
use crate::disruption_target::DisruptionTarget;

/// Why a Pod goes, as its condition says.
const DELETION: DisruptionTarget = DisruptionTarget {
    reason: "DeletionByDeviceTaintManager",
    message: "Device Taint manager: deleting due to NoExecute taint",
};
/// Why people are told of Pods.
const REASON: &str = "DeviceTaintManagerEviction";

/// The Pods that are to go. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Memory {
    scheduled: Arc<Mutex<HashSet<ObjectKey>>>,
}

impl Memory {
    /// Nothing is decided about a Pod any more. Gives whether anything was.
    pub(super) fn forget(&self, pod: &ObjectKey) -> bool {
        self.lock().remove(pod)
    }

    fn schedule(&self, pod: &ObjectKey) {
        self.lock().insert(pod.clone());
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<ObjectKey>> {
        self.scheduled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes Pods.
pub(super) struct Evictor {
    pub(super) memory: Memory,
    pub(super) metrics: EvictionMetrics,
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
        let claim = |name: &str| claims.get(&ObjectKey::namespaced(namespace, name));
        let Some(at) = due(&pod, &Around { claim: &claim, slices: &slices }) else {
            if self.memory.forget(key) {
                ctx.event(NewEvent::normal(REASON).note("Cancelling deletion"));
            }
            return Ok(Next::Settled);
        };
        self.memory.schedule(key);
        match Duration::try_from(at.duration_since(clock::now())) {
            Ok(wait) if !wait.is_zero() => Ok(Next::After(wait)),
            _ => self.evict(&pod, at, &ctx).await,
        }
    }
}

impl Evictor {
    /// Says in the Pod's status why it goes, and deletes it, unless another has its name by now.
    async fn evict(&self, pod: &Pod, due: Timestamp, ctx: &Context<Pod>) -> Result<Next> {
        let live = ctx.live().get::<Pod>(ctx.key().clone()).await?;
        let live = live.filter(|live| live.metadata.uid == pod.metadata.uid);
        if let Some(live) = live.filter(|live| live.metadata.deletion_timestamp.is_none()) {
            ctx.event(NewEvent::normal(REASON).note("Marking for deletion"));
            if let Some(condition) = DELETION.condition(&live, &clock::now_time()) {
                let status = json!({"conditions": [condition]});
                let patch = json!({"metadata": {"uid": live.metadata.uid}, "status": status});
                ctx.patch_status::<Pod, _>(ctx.key(), &Patch::Strategic(patch)).await?;
            }
            ctx.delete(&live).await?;
            self.metrics.deleted(due, clock::now());
        }
        self.memory.forget(ctx.key());
        Ok(Next::Settled)
    }
}
