//! Pods that keep the finalizer of a Job that counts them no longer: it is gone, or has finished, or
//! they were taken from it.
//!
//! When a Job goes, [`let_go`] frees its Pods, and [`free_all`] when it has finished, as somebody else
//! may have said. What was missed, because nobody looked when it went, [`controller`] finds: Pods without
//! a controller, and Pods that are being deleted whose Job is gone.

use std::sync::Arc;

use futures::future::try_join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use kube::core::Selector;
use serde_json::{Value, json};
use steersman::controller::Gone;
use steersman::object::controller_of;
use steersman::workqueue::ExponentialBackoff;
use steersman::{Client, Context, Controller, ListOptions, Metrics, Next, ObjectKey, Result};

use super::facts::{FINALIZER, finished, has_finalizer, is_ours};
use super::metrics::JobMetrics;
use super::selector;

/// A part of the Job controller with a queue of its own.
pub(crate) const NAME: &str = "job-orphan-pod-controller";

/// Frees Pods that no Job counts.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let metrics: JobMetrics = metrics.families();
    Controller::of::<Pod>()
        .named(NAME)
        .observes(move |event| metrics.observe(event))
        .only(|pod| has_finalizer(pod) && may_be_left(pod))
        .reads::<Job>()
        .concurrency(5)
        .rate_limit(ExponentialBackoff::new(super::BACKOFF.0, super::BACKOFF.1))
        .reconcile(reconcile)
}

fn may_be_left(pod: &Pod) -> bool {
    controller_of(&pod.metadata).is_none() || pod.metadata.deletion_timestamp.is_some()
}

async fn reconcile(pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
    if is_left(&pod, &ctx)? {
        free(ctx.live(), &pod).await?;
    }
    Ok(Next::Settled)
}

/// Whether no Job counts a Pod.
fn is_left(pod: &Pod, ctx: &Context<Pod>) -> Result<bool> {
    let Some(owner) = controller_of(&pod.metadata) else { return Ok(true) };
    if (owner.kind.as_str(), owner.api_version.as_str()) != ("Job", "batch/v1") {
        return Ok(false);
    }
    let job =
        ctx.get::<Job>(&owner.name)?.filter(|job| job.metadata.uid.as_ref() == Some(&owner.uid));
    Ok(job.is_none_or(|job| is_ours(&job) && finished(&job).is_some()))
}

/// Frees the Pods of a Job that is gone. One that had finished has let go of all that it counted; to
/// what it may have been given since, [`controller`] looks.
pub(super) async fn let_go(gone: Gone<Job>, client: Client) -> Result<()> {
    let Some(job) = gone.last.filter(|job| finished(job).is_none()) else { return Ok(()) };
    let Some(selector) = selector(&job).and_then(|it| Selector::try_from(it.clone()).ok()) else {
        return Ok(());
    };
    let namespace = job.metadata.namespace.clone().unwrap_or_default();
    let options = ListOptions::namespace(namespace).labels(selector.to_string());
    let pods: Vec<Pod> = client.list(&options).await?;
    let its_own = |pod: &&Pod| {
        let owner = controller_of(&pod.metadata);
        owner.is_none_or(|owner| Some(&owner.uid) == job.metadata.uid.as_ref())
    };
    let left = pods.iter().filter(|pod| has_finalizer(pod)).filter(its_own);
    try_join_all(left.map(|pod| free(&client, pod))).await.map(drop)
}

/// Frees the Pods of a Job that has finished: it counts nobody any more.
pub(super) async fn free_all(ctx: &Context<Job>) -> Result<()> {
    let pods = ctx.children::<Pod>()?;
    let left = pods.iter().filter(|pod| has_finalizer(pod));
    try_join_all(left.map(|pod| free(ctx.live(), pod))).await.map(drop)
}

/// Takes the finalizer from a Pod, which may be gone.
pub(super) async fn free(client: &Client, pod: &Pod) -> Result<()> {
    if !has_finalizer(pod) {
        return Ok(());
    }
    match client.patch_unread::<Pod, Value>(ObjectKey::of(pod), &without_finalizer()).await {
        Err(error) if error.is_not_found() => Ok(()),
        freed => freed.map(drop),
    }
}

fn without_finalizer() -> Patch<Value> {
    Patch::Strategic(json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}))
}
