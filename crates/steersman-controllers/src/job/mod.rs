//! The Job controller: runs Pods until enough have succeeded, or too many failed.
//!
//! [`plan`] decides how the Job ends and which Pods are created or deleted, with [`policy`] for what
//! a failure means, [`backoff`] for when Pods are replaced, [`ranking`] for which go first, and
//! [`indexes`] for the completions of indexed Jobs; [`template`] makes the Pods, and [`tracking`]
//! counts those that have finished, exactly once, with what [`counted`] remembers; [`metrics`] tells.
//! [`mod@orphans`] lets go of Pods that no Job counts.

mod backoff;
mod counted;
mod facts;
mod indexes;
mod metrics;
mod orphans;
mod plan;
mod policy;
mod ranking;
mod reconcile;
mod template;
#[cfg(test)]
mod tests;
mod tracking;

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use steersman::informer::Event;
use steersman::ownership::Selectors;
use steersman::workqueue::ExponentialBackoff;
use steersman::{Controller, Metrics};

use backoff::Records;
use counted::Counted;
pub(crate) use facts::{condition, finished};
use metrics::JobMetrics;
pub(crate) use orphans::{NAME as ORPHANS, controller as orphans};
use reconcile::JobWorker;

/// How long a Job that failed to be worked on waits: no Event is told more often than once a second,
/// and what held it up is seen to be over within a minute.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The Job controller.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let selectors = Selectors::new(selector);
    let adopting = selectors.clone();
    let metrics: JobMetrics = metrics.families();
    let (records, counted) = (Records::default(), Counted::default());
    let worker = JobWorker { records, counted, metrics: metrics.clone() };
    let forgetting = worker.clone();
    Controller::of::<Job>()
        .named("job-controller")
        .only(facts::is_ours)
        .observes(move |event| {
            selectors.observe(event);
            match event {
                Event::Added { object, .. } => {
                    let job = object.object().filter(|job| !facts::is_ours(job));
                    let manager = job.as_ref().and_then(|job| facts::manager(job));
                    manager.into_iter().for_each(|manager| metrics.of_another(manager));
                }
                Event::Deleted { object, .. } => {
                    forgetting.forget(object.uid().unwrap_or_default());
                }
                _ => {}
            }
        })
        .owns::<Pod>()
        .watches(move |pod: &Pod| adopting.of_orphan(&pod.metadata))
        .on_deleted(orphans::let_go)
        .concurrency(5)
        .rate_limit(ExponentialBackoff::new(BACKOFF.0, BACKOFF.1))
        .reconcile(worker)
}

/// The labels by which it claims what it controls.
fn selector(job: &Job) -> Option<&LabelSelector> {
    job.spec.as_ref().and_then(|spec| spec.selector.as_ref())
}
