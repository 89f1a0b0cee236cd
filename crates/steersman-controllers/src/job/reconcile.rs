//! Carries out what is decided: creates and deletes Pods, counts those that have finished, and
//! reports.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::events::NewEvent;
use steersman::ownership::claim_children_with_finalizer;
use steersman::{Context, Deleted, Error, Next, Reconciler, Result, clock};
use tokio::time::Instant;

use super::backoff::Records;
use super::counted::Counted;
use super::facts::{FINALIZER, finished, is_suspended, uid_of};
use super::metrics::{Action, JobMetrics};
use super::plan::{Situation, Verdict, Work, number};
use super::tracking::{self, Counts};
use super::{orphans, selector, template};
use crate::namespace::namespace_terminating;
use crate::pod;
use crate::pod_control::slow_start;

/// Works on Jobs.
#[derive(Clone)]
pub(super) struct JobWorker {
    pub(super) records: Records,
    pub(super) counted: Counted,
    pub(super) metrics: JobMetrics,
}

/// What came of the work on Pods.
struct Worked {
    counts: Counts,
    /// How the Job ends, if it does.
    verdict: Option<Verdict>,
    /// Whether Pods were looked after, so that it can be said if the Job is suspended.
    managed: bool,
    action: Action,
    next: Option<Duration>,
    /// What went wrong; what was done is reported all the same.
    error: Option<Error>,
}

impl Reconciler<Job> for JobWorker {
    async fn reconcile(&self, job: Arc<Job>, ctx: Context<Job>) -> Result<Next> {
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let Some(spec) = job.spec.as_ref().filter(|_| finished(&job).is_none()) else {
            self.forget(uid);
            return orphans::free_all(&ctx).await.map(|()| Next::Settled);
        };
        let start = Instant::now();
        let mut action = Action::Reconciling;
        let synced = self.sync(&job, spec, &ctx, &mut action).await;
        self.metrics.synced(spec, synced.is_ok(), action, start.elapsed());
        synced
    }
}

impl JobWorker {
    /// Brings a Job that has not finished a step further.
    async fn sync(
        &self,
        job: &Job,
        spec: &JobSpec,
        ctx: &Context<Job>,
        action: &mut Action,
    ) -> Result<Next> {
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let mut pods: Vec<Arc<Pod>> =
            claim_children_with_finalizer(ctx, selector(job), FINALIZER).await?;
        for late in self.counted.correct(uid, &mut pods) {
            orphans::free(ctx.live(), &late).await?;
        }
        let now = clock::now();
        let situation = Situation::new(job, spec, &pods, &self.records.of(uid), now);
        let worked = self.work(&situation, ctx).await;
        *action = worked.action;
        let next = worked.next.into_iter().chain(situation.time_left()).min();
        self.track(&situation, &worked, ctx).await?;
        match worked.error {
            Some(error) => Err(error),
            None => Ok(next.map_or(Next::Settled, Next::After)),
        }
    }

    /// Forgets a Job that has finished or is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.records.forget(uid);
        self.counted.forget(uid);
    }

    /// Deletes the Pods of a Job that ends, or creates and deletes those of one that goes on.
    async fn work(&self, now: &Situation<'_>, ctx: &Context<Job>) -> Worked {
        let active = number(now.active.len());
        let counts = Counts { active, ready: now.ready(), terminating: now.terminating() };
        let (verdict, action) = (now.verdict(), Action::Reconciling);
        let mut worked =
            Worked { counts, verdict, managed: false, action, next: None, error: None };
        if worked.verdict.is_some() {
            worked.delete(&now.active, ctx).await;
            if worked.error.is_some() {
                worked.verdict = None; // some Pods may still do something
            }
            return worked;
        }
        if now.job.metadata.deletion_timestamp.is_none() {
            worked.managed = true;
            let work = now.work();
            worked.action = match work {
                Work::Nothing if !is_suspended(now.spec) => Action::Tracking,
                Work::Nothing | Work::Delete(_) => Action::PodsDeleted,
                Work::Wait(_) | Work::Create(_) => Action::PodsCreated,
            };
            match work {
                Work::Nothing => {}
                Work::Wait(time) => worked.next = Some(time),
                Work::Create(indexes) => worked.create(now, &indexes, ctx, &self.metrics).await,
                Work::Delete(pods) => worked.free_and_delete(&pods, ctx).await,
            }
        }
        if now.is_complete(worked.counts.active) {
            worked.verdict = Some(Verdict::completed());
        }
        worked
    }

    /// Writes how far the Job is, lets Pods go that have finished, then writes that they are counted.
    async fn track(&self, now: &Situation<'_>, done: &Worked, ctx: &Context<Job>) -> Result<()> {
        let mut tracking = tracking::track(now, done.verdict.as_ref(), done.counts);
        let told = (done.managed && done.verdict.is_none())
            .then(|| tracking::suspend(&mut tracking.status, is_suspended(now.spec), now.now))
            .flatten();
        let job = self.written(now.job, now.spec, &tracking.status, ctx).await?;
        self.metrics.handled(&tracking.handled);
        if let Some((reason, note)) = told {
            ctx.event(NewEvent::normal(reason).note(note));
        }
        let uid = now.job.metadata.uid.as_deref().unwrap_or_default();
        self.records.keep(uid, now.record.clone());
        let (released, error) = release(&tracking.release, ctx).await;
        self.counted.add(now.job, now.pods, &released);
        let (status, end) = tracking.after(&released, now.now);
        self.written(&job, now.spec, &status, ctx).await?;
        if let Some(end) = end.filter(|_| error.is_none()) {
            self.metrics.ended(now.spec, &end);
            tell_of_end(&end, now.spec, &status, ctx);
            self.forget(uid);
        }
        error.map_or(Ok(()), Err)
    }

    /// The Job with this status, written if it is another.
    async fn written(
        &self,
        job: &Job,
        spec: &JobSpec,
        status: &JobStatus,
        ctx: &Context<Job>,
    ) -> Result<Job> {
        let mut job = job.clone();
        if job.status.as_ref() == Some(status) {
            return Ok(job);
        }
        let before = job.status.replace(status.clone()).unwrap_or_default();
        let written = ctx.live().update_status(&job).await?;
        self.metrics.counted(spec, &before, status);
        Ok(written)
    }
}

impl Worked {
    async fn delete(&mut self, pods: &[Arc<Pod>], ctx: &Context<Job>) {
        let deleted = join_all(pods.iter().map(|pod| ctx.delete(pod))).await;
        for (pod, result) in pods.iter().zip(deleted) {
            tell_of_deletion(pod, &result, ctx);
            match result {
                Ok(_) => {
                    self.counts.active -= 1;
                    self.counts.terminating += 1;
                    self.counts.ready -= i32::from(pod::is_ready(pod));
                }
                Err(error) => self.error = Some(error),
            }
        }
    }

    /// Deletes Pods that are not to be counted.
    async fn free_and_delete(&mut self, pods: &[Arc<Pod>], ctx: &Context<Job>) {
        let freed = join_all(pods.iter().map(|pod| orphans::free(ctx.live(), pod))).await;
        let mut free = Vec::new();
        for (pod, result) in pods.iter().zip(freed) {
            match result {
                Ok(()) => free.push(Arc::clone(pod)),
                Err(error) => self.error = Some(error),
            }
        }
        self.delete(&free, ctx).await;
    }

    /// Creates Pods in growing batches and stops after the first batch with an error.
    async fn create(
        &mut self,
        now: &Situation<'_>,
        indexes: &[Option<u32>],
        ctx: &Context<Job>,
        metrics: &JobMetrics,
    ) {
        let mut rest = indexes;
        for size in slow_start(indexes.len()) {
            let (batch, later) = rest.split_at(size);
            rest = later;
            let pods = batch.iter().map(|index| {
                let pod = template::new_pod(now.job, now.spec, now.indexed.as_ref(), *index);
                ctx.create_unread(pod)
            });
            for result in join_all(pods).await {
                tell_of_creation(&result, ctx);
                if result.as_ref().is_err_and(namespace_terminating) {
                    continue;
                }
                metrics.created(now.spec, now.failed, self.counts.terminating, result.is_ok());
                match result {
                    Ok(_) => self.counts.active += 1,
                    Err(error) => self.error = Some(error),
                }
            }
            if self.error.is_some() {
                return;
            }
        }
    }
}

/// Takes the finalizer from Pods; gives back the uids of those that are free of it.
async fn release(pods: &[Arc<Pod>], ctx: &Context<Job>) -> (Vec<String>, Option<Error>) {
    let freed = join_all(pods.iter().map(|pod| orphans::free(ctx.live(), pod))).await;
    let mut released = Vec::new();
    let mut failure = None;
    for (pod, result) in pods.iter().zip(freed) {
        match result {
            Ok(()) => released.push(uid_of(pod).to_owned()),
            Err(error) => failure = Some(error),
        }
    }
    (released, failure)
}

fn tell_of_creation(result: &Result<ObjectMeta>, ctx: &Context<Job>) {
    match result {
        Ok(pod) => {
            let note = format!("Created pod: {}", pod.name.as_deref().unwrap_or_default());
            ctx.event(NewEvent::normal("SuccessfulCreate").action("Create").note(note));
        }
        Err(error) if namespace_terminating(error) => {}
        Err(error) => {
            let note = format!("Error creating: {error}");
            ctx.event(NewEvent::warning("FailedCreate").action("Create").note(note));
        }
    }
}

fn tell_of_deletion(pod: &Pod, result: &Result<Deleted>, ctx: &Context<Job>) {
    match result {
        Ok(Deleted::NotFound) => {}
        Ok(Deleted::Gone | Deleted::Terminating) => {
            let note = format!("Deleted pod: {}", name_of(pod));
            ctx.event(NewEvent::normal("SuccessfulDelete").action("Delete").note(note));
        }
        Err(error) => {
            let note = format!("Error deleting: {error}");
            ctx.event(NewEvent::warning("FailedDelete").action("Delete").note(note));
        }
    }
}

fn tell_of_end(end: &Verdict, spec: &JobSpec, status: &JobStatus, ctx: &Context<Job>) {
    if end.type_ == "Failed" {
        return ctx.event(NewEvent::warning(end.reason.as_str()).note(end.message.as_str()));
    }
    if spec.completions.is_some_and(|wanted| status.succeeded.unwrap_or(0) > wanted) {
        let note = "Too many succeeded pods running after completion count reached";
        ctx.event(NewEvent::warning("TooManySucceededPods").note(note));
    }
    ctx.event(NewEvent::normal("Completed").note("Job completed"));
}

fn name_of(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}
