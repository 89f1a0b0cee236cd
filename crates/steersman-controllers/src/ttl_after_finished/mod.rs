//! The TTL-after-finished controller: deletes Jobs when the time that they ask for has passed since
//! they finished, and their Pods with them.

mod metrics;
mod plan;

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use steersman::{Context, Controller, Metrics, Next, Reconciler, Result, clock};

use metrics::DeletionMetrics;
use plan::{Expiry, expiry};

/// The TTL-after-finished controller.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    Controller::of::<Job>()
        .named("ttl-after-finished-controller")
        .only(|job| expiry(job, clock::now()) != Expiry::Never)
        .concurrency(5)
        .reconcile(JobCleaner { metrics: metrics.families() })
}

/// Deletes Jobs.
struct JobCleaner {
    metrics: DeletionMetrics,
}

impl Reconciler<Job> for JobCleaner {
    async fn reconcile(&self, job: Arc<Job>, ctx: Context<Job>) -> Result<Next> {
        if let Expiry::In(time) = expiry(&job, clock::now()) {
            return Ok(Next::After(time));
        }
        // The cache may be late, and somebody may have given the Job more time.
        let Some(live) = ctx.live().get::<Job>(ctx.key().clone()).await? else {
            return Ok(Next::Settled);
        };
        match expiry(&live, clock::now()) {
            Expiry::Never => Ok(Next::Settled),
            Expiry::In(time) => Ok(Next::After(time)),
            Expiry::Since(end) => {
                let uid = live.metadata.uid.clone();
                let params = DeleteParams {
                    propagation_policy: Some(PropagationPolicy::Foreground),
                    preconditions: Some(Preconditions { uid, resource_version: None }),
                    ..DeleteParams::default()
                };
                ctx.delete_with(&live, &params).await?;
                self.metrics.deleted(end, clock::now());
                Ok(Next::Settled)
            }
        }
    }
}
