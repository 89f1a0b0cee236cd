//! What a Job does about its Pods: whether it is decided how it ends, and if not, which Pods are
//! created or deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;

use super::backoff::{Record, remaining_of_index};
use super::facts::{
    completions, condition, failures_before, finish_time, has_failed, has_finalizer, has_succeeded,
    ignored_before, index_of, is_indexed, is_suspended, replaces_only_failed, uid_of, valid_index,
};
use super::indexes::Indexes;
use super::policy::{self, Failure};
use super::ranking;
use crate::pod;

/// The most Pods created or deleted in one reconcile; the rest follows in the next one.
const BURST: usize = 500;

/// How a Job ends, before and when it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The type of the condition: `FailureTarget` or `SuccessCriteriaMet`, or `Failed` if the former
    /// stands there already.
    pub(super) type_: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Verdict {
    fn new(type_: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self { type_, reason: reason.into(), message: message.into() }
    }

    fn failure(reason: &str, message: &str) -> Self {
        Self::new("FailureTarget", reason, message)
    }

    /// All completions are reached.
    pub(super) fn completed() -> Self {
        let message = "Reached expected number of succeeded pods";
        Self::new("SuccessCriteriaMet", "CompletionsReached", message)
    }

    pub(super) fn is_success(&self) -> bool {
        self.type_ == "SuccessCriteriaMet"
    }
}

/// What is done about the Pods of a Job that goes on.
#[derive(Debug, PartialEq)]
pub(super) enum Work {
    /// The number is right.
    Nothing,
    /// Too many: delete these.
    Delete(Vec<Arc<Pod>>),
    /// Too few: create so many, each for an index if the Job is indexed.
    Create(Vec<Option<u32>>),
    /// Too few, but it is too early.
    Wait(Duration),
}

/// A Job and its Pods at one moment.
pub(super) struct Situation<'a> {
    pub(super) job: &'a Job,
    pub(super) spec: &'a JobSpec,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) now: Timestamp,
    /// The Pods that neither have ended nor are being deleted.
    pub(super) active: Vec<Arc<Pod>>,
    /// How many Pods have succeeded, for an indexed Job how many indexes.
    pub(super) succeeded: i32,
    /// How many have failed.
    pub(super) failed: i32,
    /// Failures since the last success, those included that are not counted yet.
    pub(super) record: Record,
    pub(super) indexed: Option<Indexed>,
}

/// What there is besides in an indexed Job.
pub(super) struct Indexed {
    /// The indexes that succeeded, as the status says.
    pub(super) before: Indexes,
    /// Those, and the ones that succeeded since.
    pub(super) succeeded: Indexes,
    /// The indexes that failed, if each has a limit.
    pub(super) failed: Option<Indexes>,
    /// The last Pod of each index that failed and is not replaced yet, if each index has a limit:
    /// the next one has to know how often it failed.
    pub(super) delayed: BTreeMap<u32, Arc<Pod>>,
}

impl<'a> Situation<'a> {
    pub(super) fn new(
        job: &'a Job,
        spec: &'a JobSpec,
        pods: &'a [Arc<Pod>],
        record: &Record,
        now: Timestamp,
    ) -> Self {
        let status = job.status.as_ref();
        let uncounted = status.and_then(|status| status.uncounted_terminated_pods.clone());
        let uncounted = uncounted.unwrap_or_default();
        let active: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
        let new = |known: &Option<Vec<String>>, ends: &dyn Fn(&Pod) -> bool| -> Vec<Arc<Pod>> {
            let is_new = |pod: &&Arc<Pod>| {
                has_finalizer(pod)
                    && !known.iter().flatten().any(|uid| uid == uid_of(pod))
                    && (!is_indexed(spec) || valid_index(pod, spec).is_some())
                    && ends(pod)
            };
            pods.iter().filter(is_new).cloned().collect()
        };
        let succeeded = new(&uncounted.succeeded, &has_succeeded);
        let failed = new(&uncounted.failed, &|pod| has_failed(pod, spec));
        let counting = failed.iter().filter(|pod| policy::failure(spec, pod).counts());
        let of = |count: Option<i32>, new: usize, known: &Option<Vec<String>>| {
            let more = new + known.as_ref().map_or(0, Vec::len);
            count.unwrap_or(0).saturating_add(number(more))
        };
        let indexed = is_indexed(spec).then(|| Indexed::new(job, spec, pods, &active));
        let total =
            indexed.as_ref().map(|it| i32::try_from(it.succeeded.total()).unwrap_or(i32::MAX));
        let counted = status.and_then(|status| status.succeeded);
        let plain = of(counted, succeeded.len(), &uncounted.succeeded);
        let counted = status.and_then(|status| status.failed);
        Self {
            succeeded: total.unwrap_or(plain),
            failed: of(counted, counting.count(), &uncounted.failed),
            record: record.after(&succeeded, &failed),
            job,
            spec,
            pods,
            now,
            active,
            indexed,
        }
    }

    /// How many Pods are ready.
    pub(super) fn ready(&self) -> i32 {
        number(self.active.iter().filter(|pod| pod::is_ready(pod)).count())
    }

    /// How many Pods are being deleted and have not ended.
    pub(super) fn terminating(&self) -> i32 {
        number(self.pods.iter().filter(|pod| pod::is_terminating(pod)).count())
    }

    /// How the Job ends, if that is decided without looking at how many Pods have succeeded.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        if let Some(met) = condition(self.job, "SuccessCriteriaMet") {
            return Some(said("SuccessCriteriaMet", met));
        }
        if let Some(target) = condition(self.job, "FailureTarget") {
            return Some(said("Failed", target));
        }
        self.failed_by_policy()
            .or_else(|| self.failed_by_limit())
            .or_else(|| self.indexed.as_ref()?.verdict(self.spec))
            .or_else(|| {
                let met = policy::success(self.spec, &self.indexed.as_ref()?.succeeded)?;
                Some(Verdict::new("SuccessCriteriaMet", "SuccessPolicy", met))
            })
    }

    fn failed_by_policy(&self) -> Option<Verdict> {
        let mut failed = self.pods.iter().filter(|pod| has_failed(pod, self.spec));
        failed.find_map(|pod| match policy::failure(self.spec, pod) {
            Failure::FailsJob(why) => Some(Verdict::new("FailureTarget", "PodFailurePolicy", why)),
            _ => None,
        })
    }

    fn failed_by_limit(&self) -> Option<Verdict> {
        let limit = self.spec.backoff_limit.unwrap_or(6);
        if self.failed > limit || self.restarted_too_often(limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(Verdict::failure("BackoffLimitExceeded", message));
        }
        if self.time_left().is_some_and(|left| left.is_zero()) {
            let message = "Job was active longer than specified deadline";
            return Some(Verdict::failure("DeadlineExceeded", message));
        }
        None
    }

    /// Whether containers that are restarted in their Pods were so too often.
    fn restarted_too_often(&self, limit: i32) -> bool {
        let template = self.spec.template.spec.as_ref();
        if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
            return false;
        }
        let live = self.pods.iter().filter(|pod| matches!(pod::phase(pod), "Running" | "Pending"));
        let restarts: i32 = live
            .filter_map(|pod| pod.status.as_ref())
            .flat_map(|status| {
                status.init_container_statuses.iter().chain(&status.container_statuses)
            })
            .flatten()
            .map(|container| container.restart_count)
            .fold(0, i32::saturating_add);
        if limit == 0 { restarts > 0 } else { restarts >= limit }
    }

    /// How long the Job may still be active, if that is limited.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let allowed = SignedDuration::from_secs(self.spec.active_deadline_seconds?);
        if is_suspended(self.spec) {
            return None;
        }
        let started = self.job.status.as_ref().and_then(|status| status.start_time.as_ref());
        let end = started.map_or(self.now, |time| time.0).checked_add(allowed).ok()?;
        Some(Duration::try_from(end.duration_since(self.now)).unwrap_or_default())
    }

    /// Which Pods a Job that goes on creates or deletes.
    pub(super) fn work(&self) -> Work {
        let wanted = if is_suspended(self.spec) { 0 } else { self.wanted() };
        let surplus = self.active.len().saturating_sub(wanted);
        let mut removed = ranking::to_remove(self.spec, &self.active, surplus);
        removed.truncate(BURST);
        if !removed.is_empty() {
            return Work::Delete(removed);
        }
        if is_suspended(self.spec) {
            return Work::Nothing;
        }
        let in_the_way = match replaces_only_failed(self.spec) {
            true => usize::try_from(self.terminating()).unwrap_or(0),
            false => 0,
        };
        let missing = wanted.saturating_sub(self.active.len() + in_the_way);
        if missing == 0 {
            return Work::Nothing;
        }
        self.creation(missing.min(BURST))
    }

    /// How many Pods are to be active.
    fn wanted(&self) -> usize {
        let parallelism = self.spec.parallelism.unwrap_or(1);
        let wanted = match self.spec.completions {
            // One success is enough, and what runs then runs on.
            None if self.succeeded > 0 => return self.active.len(),
            None => parallelism,
            Some(completions) => completions.saturating_sub(self.succeeded).min(parallelism),
        };
        usize::try_from(wanted).unwrap_or(0)
    }

    fn creation(&self, missing: usize) -> Work {
        let Some(indexed) = &self.indexed else {
            return match self.record.remaining(self.now) {
                Some(left) => Work::Wait(left),
                None => Work::Create(vec![None; missing]),
            };
        };
        let pending = self.pending_indexes(indexed, missing);
        if self.spec.backoff_limit_per_index.is_none() {
            return match self.record.remaining(self.now) {
                Some(left) => Work::Wait(left),
                None => Work::Create(pending.into_iter().map(Some).collect()),
            };
        }
        let left = |index: &u32| remaining_of_index(indexed.delayed.get(index)?, self.now);
        let now: Vec<u32> = pending.iter().filter(|index| left(index).is_none()).copied().collect();
        match pending.iter().filter_map(left).min() {
            Some(left) if now.is_empty() => Work::Wait(left),
            _ => Work::Create(now.into_iter().map(Some).collect()),
        }
    }

    /// The first indexes that nobody works on and that are not decided.
    fn pending_indexes(&self, indexed: &Indexed, count: usize) -> Vec<u32> {
        let mut taken = indexed.succeeded.with(self.active.iter().filter_map(|pod| index_of(pod)));
        if replaces_only_failed(self.spec) {
            let terminating = self.pods.iter().filter(|pod| pod::is_terminating(pod));
            taken = taken.with(terminating.filter_map(|pod| index_of(pod)));
        }
        if let Some(failed) = &indexed.failed {
            taken = taken.merge(failed);
        }
        taken.first_others(count, completions(self.spec))
    }

    /// Whether enough Pods have succeeded, when so many are active.
    pub(super) fn is_complete(&self, active: i32) -> bool {
        let enough = match self.spec.completions {
            None => self.succeeded > 0,
            Some(completions) => self.succeeded >= completions,
        };
        enough && active == 0
    }
}

impl Indexed {
    fn new(job: &Job, spec: &JobSpec, pods: &[Arc<Pod>], active: &[Arc<Pod>]) -> Self {
        let status = job.status.as_ref();
        let read = |text: Option<&String>| {
            Indexes::parse(text.map(String::as_str).unwrap_or_default(), completions(spec))
        };
        let before = read(status.and_then(|status| status.completed_indexes.as_ref()));
        let tracked = || pods.iter().filter(|pod| has_finalizer(pod));
        let indexes = |which: &dyn Fn(&Pod) -> bool| -> Vec<u32> {
            tracked().filter(|pod| which(pod)).filter_map(|pod| valid_index(pod, spec)).collect()
        };
        let succeeded = before.with(indexes(&has_succeeded));
        let failed = spec.backoff_limit_per_index.map(|limit| {
            let failed = read(status.and_then(|status| status.failed_indexes.as_ref()));
            failed.with(indexes(&|pod| fails_index(pod, spec, limit)))
        });
        let delayed = failed.as_ref().map(|failed| {
            let active: Vec<u32> = active.iter().filter_map(|pod| index_of(pod)).collect();
            let open = |index: &u32| {
                !succeeded.has(*index) && !failed.has(*index) && !active.contains(index)
            };
            let mut delayed: BTreeMap<u32, Arc<Pod>> = BTreeMap::new();
            for pod in tracked().filter(|pod| has_failed(pod, spec)) {
                let Some(index) = valid_index(pod, spec).filter(open) else { continue };
                let later = |other: &Arc<Pod>| rank(other) <= rank(pod);
                if delayed.get(&index).is_none_or(later) {
                    delayed.insert(index, Arc::clone(pod));
                }
            }
            delayed
        });
        Self { before, succeeded, failed, delayed: delayed.unwrap_or_default() }
    }

    /// Whether indexes that failed decide how the Job ends.
    fn verdict(&self, spec: &JobSpec) -> Option<Verdict> {
        let failed = self.failed.as_ref().map(Indexes::total).filter(|failed| *failed > 0)?;
        let max = spec.max_failed_indexes.and_then(|max| u32::try_from(max).ok());
        if max.is_some_and(|max| failed > max) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Verdict::failure("MaxFailedIndexesExceeded", message));
        }
        (failed + self.succeeded.total() >= completions(spec))
            .then(|| Verdict::failure("FailedIndexes", "Job has failed indexes"))
    }
}

/// Orders Pods of one index that failed by how many failed before them.
fn rank(pod: &Pod) -> (i32, Timestamp) {
    (failures_before(pod).saturating_add(ignored_before(pod)), finish_time(pod))
}

/// Whether a Pod decides that its index has failed.
fn fails_index(pod: &Pod, spec: &JobSpec, limit: i32) -> bool {
    has_failed(pod, spec)
        && match policy::failure(spec, pod) {
            Failure::FailsIndex => true,
            failure => failure.counts() && failures_before(pod) >= limit,
        }
}

fn said(type_: &'static str, by: &k8s_openapi::api::batch::v1::JobCondition) -> Verdict {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Verdict { type_, reason: text(&by.reason), message: text(&by.message) }
}

pub(super) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
