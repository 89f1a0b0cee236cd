//! The Job controller: runs Pods until enough have succeeded, or too many failed.
//!
//! [`plan`] decides how the Job ends and which Pods are created or deleted, with [`policy`] for what
//! a failure means, [`backoff`] for when Pods are replaced, [`ranking`] for which go first, and
//! [`indexes`] for the completions of indexed Jobs; [`template`] makes the Pods, and [`tracking`]
//! counts those that have finished, exactly once, with what [`counted`] remembers.
//! [`mod@orphans`] lets go of Pods that no Job counts.

mod backoff;
mod counted;
mod facts;
mod indexes;
mod orphans;
mod plan;
mod policy;
mod ranking;
mod reconcile;
mod template;
#[cfg(test)]
mod tests;
mod tracking;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use steersman::Controller;
use steersman::informer::Event;
use steersman::ownership::Selectors;

use backoff::Records;
use counted::Counted;
pub(crate) use facts::{condition, finished};
pub(crate) use orphans::{NAME as ORPHANS, controller as orphans};
use reconcile::JobWorker;

/// The Job controller.
pub(crate) fn controller() -> Controller {
    let selectors = Selectors::new(selector);
    let adopting = selectors.clone();
    let worker = JobWorker { records: Records::default(), counted: Counted::default() };
    let forgetting = worker.clone();
    Controller::of::<Job>()
        .named("job-controller")
        .only(facts::is_ours)
        .observes(move |event| {
            selectors.observe(event);
            if let Event::Deleted { object, .. } = event {
                forgetting.forget(object.uid().unwrap_or_default());
            }
        })
        .owns::<Pod>()
        .watches(move |pod: &Pod| adopting.of_orphan(&pod.metadata))
        .on_deleted(orphans::let_go)
        .concurrency(5)
        .reconcile(worker)
}

/// The labels by which it claims what it controls.
fn selector(job: &Job) -> Option<&LabelSelector> {
    job.spec.as_ref().and_then(|spec| spec.selector.as_ref())
}
