//! One look at one Pod of a tainted node: lets it stay, waits, or deletes it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Patch;
use serde_json::json;
use steersman::{Context, Next, ObjectKey, Reconciler, Result, clock};

use super::events::{cancelled, marked};
use super::evictions::Evictions;
use super::metrics::EvictionMetrics;
use super::plan::{Decision, Scheduled, decide, due};
use crate::disruption_target::DisruptionTarget;
use crate::node::no_execute_taints;
use crate::pod::node_name;

/// Why a Pod goes, as its condition says.
const DELETION: DisruptionTarget = DisruptionTarget {
    reason: "DeletionByTaintManager",
    message: "Taint manager: deleting due to NoExecute taint",
};

/// Deletes Pods.
pub(super) struct Evictor {
    pub(super) evictions: Evictions,
    pub(super) metrics: EvictionMetrics,
}

impl Reconciler<Pod> for Evictor {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        let (now, key) = (clock::now(), ctx.key());
        self.evictions.tell_by(ctx.recorder());
        let scheduled = self.evictions.scheduled(key);
        if scheduled.is_none() && pod.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Settled); // it goes already
        }
        let node = ctx.cache::<Node>()?.get(&ObjectKey::named(node_name(&pod).unwrap_or_default()));
        let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref());
        let decision = match &node {
            Some(node) => {
                let taints = no_execute_taints(node);
                decide(&taints, tolerations.unwrap_or_default(), scheduled, now)
            }
            // What was decided before the node was gone stays decided.
            None => scheduled.map_or(Decision::Stay, |scheduled| due(scheduled.at, now)),
        };
        match decision {
            Decision::Stay => Ok(Next::Settled),
            Decision::Cancel => {
                self.evictions.forget(key);
                cancelled(ctx.recorder(), key);
                Ok(Next::Settled)
            }
            Decision::At(at) => {
                self.evictions.schedule(key, Scheduled { at });
                Ok(Next::After(Duration::try_from(at.duration_since(now)).unwrap_or_default()))
            }
            Decision::Instead => {
                cancelled(ctx.recorder(), key);
                self.evict(&ctx, now).await
            }
            Decision::Now => {
                self.evict(&ctx, scheduled.map_or(now, |scheduled| scheduled.at)).await
            }
        }
    }
}

impl Evictor {
    /// Says in the Pod's status why it goes, and deletes it.
    async fn evict(&self, ctx: &Context<Pod>, due: Timestamp) -> Result<Next> {
        marked(ctx.recorder(), ctx.key());
        // If it fails, it is due as before, and people have been told.
        self.evictions.schedule(ctx.key(), Scheduled { at: due });
        if let Some(pod) = ctx.live().get::<Pod>(ctx.key().clone()).await? {
            if let Some(condition) = DELETION.condition(&pod, &clock::now_time()) {
                let status = json!({"conditions": [condition]});
                let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": status});
                ctx.patch_status::<Pod, _>(ctx.key(), &Patch::Strategic(patch)).await?;
            }
            ctx.delete(&pod).await?;
            self.metrics.deleted(due, clock::now());
        }
        self.evictions.forget(ctx.key());
        Ok(Next::Settled)
    }
}
