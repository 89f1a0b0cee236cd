//! The ephemeral volume controller: makes the claims of Pods' ephemeral volumes. They belong to their
//! Pods, and the garbage collector takes them away with them.

mod metrics;
mod plan;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use steersman::events::{NewEvent, Reference};
use steersman::volumes::created_for;
use steersman::{Context, Controller, Error, Metrics, Next, ObjectKey, Reconciler, Result};

use metrics::EphemeralMetrics;
use plan::{claims, concerns};

/// Who tells of Pods.
const COMPONENT: &str = "ephemeral_volume";

/// The ephemeral volume controller.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    Controller::of::<Pod>()
        .named("ephemeral-volume-controller")
        .only(concerns)
        .owns::<PersistentVolumeClaim>()
        .reconcile(Ephemeral { metrics: metrics.families() })
}

struct Ephemeral {
    metrics: EphemeralMetrics,
}

impl Reconciler<Pod> for Ephemeral {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        for (volume, claim) in claims(&pod) {
            if let Err(error) = self.provide(&pod, claim, &ctx).await {
                let note = format!("ephemeral volume {volume}: {error}");
                let recorder = ctx.recorder().reporting(COMPONENT);
                recorder.event(Reference::of(&*pod), NewEvent::warning("FailedBinding").note(note));
                return Err(error);
            }
        }
        Ok(Next::Settled)
    }
}

impl Ephemeral {
    /// Makes a claim, unless it is there.
    async fn provide(
        &self,
        pod: &Pod,
        claim: PersistentVolumeClaim,
        ctx: &Context<Pod>,
    ) -> Result<()> {
        let key = ObjectKey::of(&claim);
        if let Some(found) = ctx.cache::<PersistentVolumeClaim>()?.get(&key) {
            return created_for(&found, pod).map_err(|error| Error::message(error.to_string()));
        }
        let created = ctx.live().create(&claim).await;
        self.metrics.tried(created.is_ok());
        let name = &key.name;
        created.map(drop).map_err(|error| Error::message(format!("create PVC {name}: {error}")))
    }
}
