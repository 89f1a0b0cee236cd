//! Carries out the plan: creates and deletes Pods, and reports.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use steersman::object::controller_of;
use steersman::ownership::claim_children_among;
use steersman::{Context, Error, Metrics, Next, Reconciler, Result, clock};

use super::metrics::ReplicaMetrics;
use super::plan::{self, Plan};
use super::replicated::Replicated;
use super::status::{self, Failure};
use crate::pod;
use crate::pod_control::{self, FAILED_CREATE, FAILED_DELETE};

/// Works on ReplicaSets and on what is like them.
#[derive(Clone)]
pub(crate) struct ReplicaWorker {
    metrics: ReplicaMetrics,
}

impl ReplicaWorker {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self { metrics: metrics.families() }
    }

    /// Creates what lacks, or deletes what is too much.
    async fn correct<K: Replicated>(
        &self,
        set: &ReplicaSet,
        pods: &[Arc<Pod>],
        ctx: &Context<K>,
    ) -> Result<(), (Failure, Error)> {
        let active = plan::active(pods);
        let surplus = active.len() > plan::desired(set);
        let related = if surplus { related_pods(set, ctx) } else { Ok(Vec::new()) };
        let related = related.map_err(|error| failed(FAILED_DELETE, error))?;
        match plan::plan(set, &active, &related, clock::now()) {
            Plan::Nothing => Ok(()),
            Plan::Create(count) => {
                let pod = plan::new_pod(set);
                let created = pod_control::create(ctx, (0..count).map(|_| pod.clone())).await;
                created.map_err(|error| failed(FAILED_CREATE, error))
            }
            Plan::Delete(pods) => {
                self.metrics.chosen(&active, &pods, clock::now());
                let deleted = pod_control::delete(ctx, &pods).await;
                deleted.map_err(|error| failed(FAILED_DELETE, error))
            }
        }
    }
}

impl<K: Replicated> Reconciler<K> for ReplicaWorker {
    /// Brings the Pods of one ReplicaSet, or of what is like it, to the number it asks for.
    async fn reconcile(&self, object: Arc<K>, ctx: Context<K>) -> Result<Next> {
        let selector = object.selector();
        // One that has ended or is about to can stand in for nobody: it is not adopted, and stays with
        // whom it is even if it is not selected any more.
        let pods: Vec<Arc<Pod>> =
            claim_children_among(&ctx, selector.as_deref(), pod::is_active).await?;
        let set = object.as_set();
        let now = clock::now();
        let corrected = match set.metadata.deletion_timestamp {
            None => self.correct(&set, &pods, &ctx).await,
            Some(_) => Ok(()),
        };
        let failure = corrected.as_ref().err().map(|(failure, _)| failure);
        ctx.status(K::status_of(status::status(&set, &pods, failure, now)));
        corrected.map_err(|(_, error)| error)?;
        Ok(status::next_available(&set, &pods, now).map_or(Next::Settled, Next::After))
    }
}

/// What is told of an error, in Kubernetes' words.
pub(super) fn failed(reason: &'static str, error: Error) -> (Failure, Error) {
    let message = match reason {
        FAILED_DELETE => format!("unable to delete pods: {error}"),
        _ => error.to_string(),
    };
    (Failure { reason, message }, error)
}

/// The Pods of all of its kind that have the same controller as this one, its own included.
fn related_pods<K: Replicated>(set: &ReplicaSet, ctx: &Context<K>) -> Result<Vec<Arc<Pod>>> {
    let Some(owner) = controller_of(&set.metadata) else {
        return ctx.children::<Pod>();
    };
    let pods = ctx.cache::<Pod>()?;
    let sets = ctx.cache::<K>()?.by_owner(&owner.uid);
    let uids = sets.iter().filter_map(|set| set.meta().uid.as_deref());
    Ok(uids.flat_map(|uid| pods.by_owner(uid)).collect())
}
