//! One look at one Pod that may be garbage: waits until it is due, and removes it by force.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::{Value, json};
use steersman::{Context, Next, ObjectKey, Reconciler, Result, clock};

use super::garbage::Garbage;
use super::metrics::CollectorMetrics;
use super::plan::Reason;
use crate::disruption_target::DisruptionTarget;
use crate::pod::{is_terminal, node_name};

/// Why a Pod goes whose node is gone, as its condition says.
const ORPHANED: DisruptionTarget =
    DisruptionTarget { reason: "DeletionByPodGC", message: "PodGC: node no longer exists" };

/// Removes Pods.
pub(super) struct Collector {
    pub(super) garbage: Garbage,
    pub(super) metrics: CollectorMetrics,
}

impl Reconciler<Pod> for Collector {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        let now = clock::now();
        let Some((reason, at)) = self.garbage.due(&pod, now) else { return Ok(Next::Settled) };
        if now < at {
            let left = Duration::try_from(at.duration_since(now));
            return Ok(Next::After(left.unwrap_or_default()));
        }
        if reason == Reason::Orphaned && exists(&pod, &ctx).await? {
            return Ok(Next::Settled); // the cache is late, and will tell
        }
        let removed = remove(&pod, reason, &ctx).await;
        let namespace = ctx.key().namespace.as_deref().unwrap_or_default();
        self.metrics.removed(namespace, reason, removed.is_ok());
        if removed.is_ok() {
            self.garbage.removed(ctx.key());
        }
        removed.map(|()| Next::Settled)
    }
}

/// Whether the node of a Pod exists after all.
async fn exists(pod: &Pod, ctx: &Context<Pod>) -> Result<bool> {
    let node = ObjectKey::named(node_name(pod).unwrap_or_default());
    Ok(ctx.live().get::<Node>(node).await?.is_some())
}

/// Says that the Pod has failed, unless it has ended, and deletes it by force.
async fn remove(pod: &Pod, reason: Reason, ctx: &Context<Pod>) -> Result<()> {
    if !is_terminal(pod) {
        let patch = Patch::Strategic(failed(pod, reason));
        match ctx.patch_status::<Pod, _>(ctx.key(), &patch).await {
            Err(error) if error.is_not_found() => return Ok(()),
            patched => patched.map(drop)?,
        }
    }
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions {
            uid: pod.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    ctx.delete_with(pod, &params).await.map(drop)
}

/// The change by which a Pod has failed.
fn failed(pod: &Pod, reason: Reason) -> Value {
    let meta = &pod.metadata;
    let mut status = json!({"phase": "Failed", "observedGeneration": meta.generation});
    if reason == Reason::Orphaned
        && let Some(condition) = ORPHANED.condition(pod, &clock::now_time())
    {
        status["conditions"] = json!([condition]);
    }
    json!({"metadata": {"uid": meta.uid}, "status": status})
}
