//! Carries out the plan: creates and deletes Pods, and reports.

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use steersman::object::controller_of;
use steersman::{Context, Error, Next, Result, clock};

use super::plan::{self, Plan};
use super::status::{self, Failure};
use crate::ownership;

/// Brings the Pods of one ReplicaSet to the number it asks for.
pub(super) async fn reconcile(set: Arc<ReplicaSet>, ctx: Context<ReplicaSet>) -> Result<Next> {
    let pods: Vec<Arc<Pod>> = ownership::settle_claims(&*set, &ctx).await?;
    let now = clock::now();
    let corrected = match set.metadata.deletion_timestamp {
        None => correct(&set, &pods, &ctx).await,
        Some(_) => Ok(()),
    };
    let failure = corrected.as_ref().err().map(|(failure, _)| failure);
    ctx.status(status::status(&set, &pods, failure, now));
    corrected.map_err(|(_, error)| error)?;
    Ok(status::next_available(&set, &pods, now).map_or(Next::Settled, Next::After))
}

/// Creates what lacks, or deletes what is too much.
async fn correct(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    ctx: &Context<ReplicaSet>,
) -> Result<(), (Failure, Error)> {
    let active = plan::active(pods);
    let surplus = active.len() > plan::desired(set);
    let related = if surplus { related_pods(set, ctx) } else { Ok(Vec::new()) };
    let related = related.map_err(|error| failed("FailedDelete", error))?;
    match plan::plan(set, &active, &related, clock::now()) {
        Plan::Nothing => Ok(()),
        Plan::Create(count) => {
            create(set, count, ctx).await.map_err(|error| failed("FailedCreate", error))
        }
        Plan::Delete(pods) => {
            delete(&pods, ctx).await.map_err(|error| failed("FailedDelete", error))
        }
    }
}

fn failed(reason: &'static str, error: Error) -> (Failure, Error) {
    (Failure { reason, message: error.to_string() }, error)
}

/// Creates Pods in growing batches and stops after the first batch with an error.
async fn create(set: &ReplicaSet, count: usize, ctx: &Context<ReplicaSet>) -> Result<()> {
    let pod = plan::new_pod(set);
    for batch in plan::slow_start(count) {
        let created = join_all((0..batch).map(|_| ctx.create(pod.clone()))).await;
        for result in created {
            match result {
                Err(error) if namespace_terminating(&error) => return Ok(()),
                result => drop(result?),
            }
        }
    }
    Ok(())
}

/// Whether the server refused because the namespace is being deleted: then there is nothing
/// to do and nothing to report.
fn namespace_terminating(error: &Error) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    })
}

async fn delete(pods: &[Arc<Pod>], ctx: &Context<ReplicaSet>) -> Result<()> {
    let deleted = join_all(pods.iter().map(|pod| ctx.delete(&**pod))).await;
    deleted.into_iter().try_for_each(|result| result.map(drop))
}

/// The Pods of all ReplicaSets that have the same controller as this one, its own included.
fn related_pods(set: &ReplicaSet, ctx: &Context<ReplicaSet>) -> Result<Vec<Arc<Pod>>> {
    let Some(owner) = controller_of(&set.metadata) else {
        return ctx.children::<Pod>();
    };
    let pods = ctx.cache::<Pod>()?;
    let sets = ctx.cache::<ReplicaSet>()?.by_owner(&owner.uid);
    let uids = sets.iter().filter_map(|set| set.metadata.uid.as_deref());
    Ok(uids.flat_map(|uid| pods.by_owner(uid)).collect())
}
