//! Carries out the plan: creates and deletes Pods, and reports.

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use steersman::events::NewEvent;
use steersman::object::controller_of;
use steersman::ownership::claim_children;
use steersman::{Context, Deleted, Error, Next, Result, clock};

use super::plan::{self, Plan};
use super::selector;
use super::status::{self, Failure};
use crate::namespace::namespace_terminating;

/// Why Pods could not be created or deleted, in conditions and Events.
const FAILED_CREATE: &str = "FailedCreate";
const FAILED_DELETE: &str = "FailedDelete";
/// What was tried, in Events.
const CREATE: &str = "Create";
const DELETE: &str = "Delete";

/// Brings the Pods of one ReplicaSet to the number it asks for.
pub(super) async fn reconcile(set: Arc<ReplicaSet>, ctx: Context<ReplicaSet>) -> Result<Next> {
    let pods: Vec<Arc<Pod>> = claim_children(&ctx, selector(&set)).await?;
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
    let related = related.map_err(|error| failed(FAILED_DELETE, error))?;
    match plan::plan(set, &active, &related, clock::now()) {
        Plan::Nothing => Ok(()),
        Plan::Create(count) => {
            create(set, count, ctx).await.map_err(|error| failed(FAILED_CREATE, error))
        }
        Plan::Delete(pods) => {
            delete(&pods, ctx).await.map_err(|error| failed(FAILED_DELETE, error))
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
        created.iter().for_each(|result| tell_of_creation(result, ctx));
        for result in created {
            match result {
                Err(error) if namespace_terminating(&error) => return Ok(()),
                result => drop(result?),
            }
        }
    }
    Ok(())
}

fn tell_of_creation(result: &Result<Pod>, ctx: &Context<ReplicaSet>) {
    match result {
        Ok(pod) => {
            let note = format!("Created pod: {}", name_of(pod));
            ctx.event(NewEvent::normal("SuccessfulCreate").action(CREATE).note(note));
        }
        Err(error) if namespace_terminating(error) => {}
        Err(error) => {
            let note = format!("Error creating: {error}");
            ctx.event(NewEvent::warning(FAILED_CREATE).action(CREATE).note(note));
        }
    }
}

fn name_of(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

async fn delete(pods: &[Arc<Pod>], ctx: &Context<ReplicaSet>) -> Result<()> {
    let deleted = join_all(pods.iter().map(|pod| ctx.delete(pod))).await;
    for (pod, result) in pods.iter().zip(&deleted) {
        tell_of_deletion(pod, result, ctx);
    }
    deleted.into_iter().try_for_each(|result| result.map(drop))
}

fn tell_of_deletion(pod: &Pod, result: &Result<Deleted>, ctx: &Context<ReplicaSet>) {
    match result {
        Ok(Deleted::NotFound) => {}
        Ok(Deleted::Gone | Deleted::Terminating) => {
            let note = format!("Deleted pod: {}", name_of(pod));
            ctx.event(NewEvent::normal("SuccessfulDelete").action(DELETE).note(note));
        }
        Err(error) => {
            let note = format!("Error deleting: {error}");
            ctx.event(NewEvent::warning(FAILED_DELETE).action(DELETE).note(note));
        }
    }
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
