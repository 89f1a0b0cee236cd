//! Carries out the plan: starts and deletes Jobs, and keeps the list of those that run.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DeleteParams;
use steersman::events::NewEvent;
use steersman::object::is_controlled_by;
use steersman::{Context, Next, ObjectKey, Reconciler, Result, clock};

use super::changes::Changes;
use super::metrics::CronJobMetrics;
use super::plan::{self, Decision};
use super::schedule::{Schedule, time_zone};
use crate::job;
use crate::namespace::namespace_terminating;

/// Works on CronJobs.
pub(super) struct CronJobWorker {
    pub(super) changes: Changes,
    pub(super) metrics: CronJobMetrics,
}

impl Reconciler<CronJob> for CronJobWorker {
    /// Starts what is due of one CronJob.
    async fn reconcile(&self, cron: Arc<CronJob>, ctx: Context<CronJob>) -> Result<Next> {
        let uid = cron.metadata.uid.as_deref().unwrap_or_default();
        let mut jobs = ctx.children::<Job>()?;
        jobs.retain(|job| is_controlled_by(&job.metadata, uid));
        let mut status = cron.status.clone().unwrap_or_default();
        for job in plan::outlived(&cron.spec, &jobs) {
            delete(job, &mut status, &ctx).await;
        }
        let started = sync(&cron, &mut status, &jobs, &ctx, self).await;
        if status.active.as_ref().is_some_and(Vec::is_empty) {
            status.active = None;
        }
        ctx.status(status);
        started
    }
}

async fn sync(
    cron: &CronJob,
    status: &mut CronJobStatus,
    jobs: &[Arc<Job>],
    ctx: &Context<CronJob>,
    worker: &CronJobWorker,
) -> Result<Next> {
    let spec = &cron.spec;
    observe(status, jobs, ctx);
    forget_missing(status, jobs, ctx).await?;
    if cron.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Settled);
    }
    let zone = match spec.time_zone.as_deref().map(time_zone).transpose() {
        Ok(zone) => zone.unwrap_or(TimeZone::UTC),
        Err(why) => {
            let zone = spec.time_zone.as_deref().unwrap_or_default();
            warn("UnknownTimeZone", format!("invalid timeZone: {zone:?}: {why}"), ctx);
            return Ok(Next::Settled);
        }
    };
    if spec.suspend == Some(true) {
        return Ok(Next::Settled);
    }
    let text = &spec.schedule;
    if text.contains("TZ") {
        let note = format!(
            "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        );
        warn("UnsupportedSchedule", note, ctx);
    }
    match Schedule::parse(text, zone.clone()) {
        Ok(schedule) => {
            let (changed, metrics) = (worker.changes.of(ctx.key()), &worker.metrics);
            let due = DueContext { cron, zone: &zone, schedule: &schedule, changed, ctx, metrics };
            due.start(status).await
        }
        Err(why) => {
            warn("UnparseableSchedule", format!("unparseable schedule: {text:?} : {why}"), ctx);
            Ok(Next::Settled)
        }
    }
}

/// What is needed to start what is due.
struct DueContext<'a> {
    cron: &'a CronJob,
    zone: &'a TimeZone,
    schedule: &'a Schedule,
    /// When the schedule was changed.
    changed: Option<Timestamp>,
    ctx: &'a Context<CronJob>,
    metrics: &'a CronJobMetrics,
}

impl DueContext<'_> {
    async fn start(&self, status: &mut CronJobStatus) -> Result<Next> {
        let now = clock::now();
        let planned = match plan::plan(self.cron, status, self.schedule, self.changed, now) {
            Ok(planned) => planned,
            Err(why) => {
                let note = format!("invalid schedule: {} : {why}", self.cron.spec.schedule);
                warn("InvalidSchedule", note, self.ctx);
                return Ok(Next::Settled);
            }
        };
        if planned.many_missed {
            let note = "too many missed start times. Set or decrease \
                        .spec.startingDeadlineSeconds or check clock skew";
            warn("TooManyMissedTimes", note.into(), self.ctx);
        }
        match planned.decision {
            Decision::Early | Decision::Done => {}
            Decision::TooLate(time) => {
                let time = time.strftime("%a, %d %b %Y %H:%M:%S +0000");
                warn(
                    "MissSchedule",
                    format!("Missed scheduled time to start a job: {time}"),
                    self.ctx,
                );
            }
            Decision::Forbidden => {
                let note = "Not starting job because prior execution is running and concurrency \
                            policy is Forbid";
                self.ctx.event(NewEvent::normal("JobAlreadyActive").note(note));
            }
            Decision::Start(time) => {
                if self.cron.spec.concurrency_policy.as_deref() == Some("Replace") {
                    self.replace(status).await?;
                }
                self.create(time, status).await?;
            }
        }
        let next = plan::next_look(self.cron, status, self.schedule, self.changed, now);
        Ok(next.map_or(Next::Settled, Next::After))
    }

    /// Deletes what still runs.
    async fn replace(&self, status: &mut CronJobStatus) -> Result<()> {
        for reference in status.active.clone().unwrap_or_default() {
            let key = key_of(&reference);
            match self.ctx.live().get::<Job>(key.clone()).await {
                Ok(Some(job)) => {
                    if !delete(&job, status, self.ctx).await {
                        let why = format!("could not replace job {key}");
                        return Err(steersman::Error::message(why));
                    }
                }
                Ok(None) => forget(status, reference.uid.as_deref().unwrap_or_default()),
                Err(error) => {
                    warn("FailedGet", format!("Get job: {error}"), self.ctx);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Creates the Job for a time, unless it is there.
    async fn create(&self, time: Timestamp, status: &mut CronJobStatus) -> Result<()> {
        let job = plan::new_job(self.cron, self.zone, time);
        let key = ObjectKey::of(&job);
        let created = match self.ctx.create(job).await {
            Ok(job) => {
                let note = format!("Created job {}", key.name);
                self.ctx.event(NewEvent::normal("SuccessfulCreate").note(note));
                self.metrics.created(&job, time);
                job
            }
            Err(error) if namespace_terminating(&error) => return Ok(()),
            Err(error) if error.is_already_exists() => {
                let uid = self.cron.metadata.uid.as_deref().unwrap_or_default();
                let found = self.ctx.live().get::<Job>(key).await?;
                // Whoever else made it looks after it.
                let ours = found.filter(|job| is_controlled_by(&job.metadata, uid));
                match ours.filter(|job| !is_listed(status, job)) {
                    Some(job) => job,
                    None => return Ok(()),
                }
            }
            Err(error) => {
                warn("FailedCreate", format!("Error creating job: {error}"), self.ctx);
                return Err(error);
            }
        };
        status.active.get_or_insert_default().push(reference_to(&created));
        status.last_schedule_time = Some(Time(time));
        Ok(())
    }
}

/// Notes which Jobs have finished, and tells of those that nobody knows.
fn observe(status: &mut CronJobStatus, jobs: &[Arc<Job>], ctx: &Context<CronJob>) {
    for job in jobs {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let listed = is_listed(status, job);
        let Some(end) = job::finished(job) else {
            if !listed {
                let note =
                    format!("Saw a job that the controller did not create or forgot: {name}");
                warn("UnexpectedJob", note, ctx);
            }
            continue;
        };
        if listed {
            forget(status, job.metadata.uid.as_deref().unwrap_or_default());
            let note = format!("Saw completed job: {name}, condition: {}", end.type_);
            ctx.event(NewEvent::normal("SawCompletedJob").note(note));
        }
        if job::condition(job, "Complete").is_some() {
            let time = job.status.as_ref().and_then(|status| status.completion_time.clone());
            let last = status.last_successful_time.as_ref();
            if time.as_ref().is_some_and(|time| last.is_none_or(|last| time.0 > last.0)) {
                status.last_successful_time = time;
            }
        }
    }
}

/// Takes Jobs off the list that are gone.
async fn forget_missing(
    status: &mut CronJobStatus,
    jobs: &[Arc<Job>],
    ctx: &Context<CronJob>,
) -> Result<()> {
    for reference in status.active.clone().unwrap_or_default() {
        let known = jobs.iter().any(|job| job.metadata.uid == reference.uid);
        // The cache may be late.
        if known || ctx.live().get::<Job>(key_of(&reference)).await?.is_some() {
            continue;
        }
        let name = reference.name.as_deref().unwrap_or_default();
        let note = format!("Active job went missing: {name}");
        ctx.event(NewEvent::normal("MissingJob").note(note));
        forget(status, reference.uid.as_deref().unwrap_or_default());
    }
    Ok(())
}

/// Deletes a Job and its Pods, and takes it off the list; whether that succeeded.
async fn delete(job: &Job, status: &mut CronJobStatus, ctx: &Context<CronJob>) -> bool {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    if let Err(error) = ctx.delete_with(job, &DeleteParams::background()).await {
        warn("FailedDelete", format!("Deleted job: {error}"), ctx);
        return false;
    }
    forget(status, job.metadata.uid.as_deref().unwrap_or_default());
    ctx.event(NewEvent::normal("SuccessfulDelete").note(format!("Deleted job {name}")));
    true
}

fn is_listed(status: &CronJobStatus, job: &Job) -> bool {
    status.active.iter().flatten().any(|active| active.uid == job.metadata.uid)
}

fn forget(status: &mut CronJobStatus, uid: &str) {
    status.active.iter_mut().for_each(|active| active.retain(|it| it.uid.as_deref() != Some(uid)));
}

fn key_of(reference: &ObjectReference) -> ObjectKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    ObjectKey::namespaced(text(&reference.namespace), text(&reference.name))
}

fn reference_to(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".into()),
        kind: Some("Job".into()),
        name: job.metadata.name.clone(),
        namespace: job.metadata.namespace.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

fn warn(reason: &str, note: String, ctx: &Context<CronJob>) {
    ctx.event(NewEvent::warning(reason).note(note));
}
