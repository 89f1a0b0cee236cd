//! The CronJob controller: starts Jobs on a schedule.
//!
//! [`schedule`] says when something is due, from the five [`fields`] that people write; [`plan`]
//! decides whether a Job is started, and which finished ones are kept no longer. A Job is named after
//! the minute for which it is started, so that nobody starts it twice. [`changes`] of a schedule are
//! about what comes after them.

mod changes;
mod fields;
mod metrics;
mod plan;
mod reconcile;
mod schedule;
#[cfg(test)]
mod tests;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use steersman::{Controller, Metrics};

use changes::Changes;
use reconcile::CronJobWorker;

/// The CronJob controller.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let changes = Changes::default();
    let observed = changes.clone();
    Controller::of::<CronJob>()
        .named("cronjob-controller")
        .observes(move |event| observed.observe(event))
        .owns::<Job>()
        .concurrency(5)
        .updates_status()
        .reconcile(CronJobWorker { changes, metrics: metrics.families() })
}
