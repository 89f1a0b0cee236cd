//! Counts Pods so that none is lost and none counted twice, whatever fails in between.
//!
//! A Pod that has finished is first written into `status.uncountedTerminatedPods`, then loses its
//! finalizer, and is then counted and taken off that list, in this order. So at any moment a Pod that
//! has finished has its finalizer, or is on the list, or is counted. Indexed Jobs need no list of
//! successes: the index itself is counted once.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;

use super::facts::{
    has_failed, has_finalizer, has_succeeded, index_of, is_suspended, time, uid_of, valid_index,
};
use super::plan::{Situation, Verdict, number};
use super::policy;

/// The most Pods on the list, so that the status stays small.
const UNCOUNTED_MAX: usize = 500;

/// How many Pods there are once the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) active: i32,
    pub(super) ready: i32,
    pub(super) terminating: i32,
}

/// What is to be written before Pods are let go, and which are.
#[derive(Debug)]
pub(super) struct Tracking {
    pub(super) status: JobStatus,
    /// Pods that lose their finalizer once the status is written.
    pub(super) release: Vec<Arc<Pod>>,
    /// How the Job ends: `Complete` or `Failed`, with reason and message.
    pub(super) end: Option<Verdict>,
    /// The actions of rules by which failed Pods were dealt with, one for each Pod.
    pub(super) handled: Vec<String>,
    /// Uids of Pods that still have their finalizer.
    held: HashSet<String>,
    /// There were more Pods than fit on the list.
    more: bool,
}

/// Decides what becomes of the Pods that have finished.
pub(super) fn track(now: &Situation<'_>, verdict: Option<&Verdict>, counts: Counts) -> Tracking {
    let held = now.pods.iter().filter(|pod| has_finalizer(pod));
    let held: HashSet<String> = held.map(|pod| uid_of(pod).to_owned()).collect();
    let mut status = now.job.status.clone().unwrap_or_default();
    if status.start_time.is_none() && !is_suspended(now.spec) {
        status.start_time = Some(time(now.now));
    }
    status.active = nonzero(counts.active);
    status.ready = Some(counts.ready);
    status.terminating = Some(counts.terminating);
    status.uncounted_terminated_pods.get_or_insert_default();
    count(&mut status, &held);
    let (release, handled) = (Vec::new(), Vec::new());
    let mut tracking = Tracking { status, release, end: None, handled, held, more: false };
    tracking.list(now, verdict);
    tracking.report_indexes(now);
    tracking.end = verdict.map(|verdict| tracking.announce(verdict, now.now));
    tracking
}

impl Tracking {
    /// Puts Pods that have finished on the list.
    fn list(&mut self, now: &Situation<'_>, verdict: Option<&Verdict>) {
        let mut pods: Vec<&Arc<Pod>> = now.pods.iter().filter(|pod| has_finalizer(pod)).collect();
        if now.indexed.is_some() {
            pods.sort_by_key(|pod| index_of(pod));
        }
        let lost = verdict.is_some_and(|verdict| !verdict.is_success());
        let mut new_indexes = 0;
        for pod in pods {
            let failed = has_failed(pod, now.spec);
            if !can_release(now, verdict, pod, failed) {
                continue;
            }
            self.release.push(Arc::clone(pod));
            let uid = uid_of(pod).to_owned();
            let list = self.status.uncounted_terminated_pods.get_or_insert_default();
            if has_succeeded(pod) && !contains(&list.failed, &uid) {
                match &now.indexed {
                    Some(indexed) => {
                        let index = valid_index(pod, now.spec);
                        new_indexes += usize::from(index.is_some_and(|it| !indexed.before.has(it)));
                    }
                    None => add(&mut list.succeeded, uid),
                }
            } else if failed || lost {
                // When the Job has failed, so have all Pods that had not ended.
                let concerns = now.indexed.is_none() || valid_index(pod, now.spec).is_some();
                if concerns && !contains(&list.failed, &uid) {
                    let rule = policy::matched(now.spec, pod);
                    self.handled.extend(rule.map(|(action, _)| action.to_owned()));
                    if policy::failure(now.spec, pod).counts() {
                        add(&mut list.failed, uid);
                    }
                }
            }
            if new_indexes + length(list) >= UNCOUNTED_MAX {
                self.more = true;
                return;
            }
        }
    }

    fn report_indexes(&mut self, now: &Situation<'_>) {
        let Some(indexed) = &now.indexed else { return };
        let done = &indexed.succeeded;
        self.status.succeeded = nonzero(i32::try_from(done.total()).unwrap_or(i32::MAX));
        self.status.completed_indexes = (!done.is_empty()).then(|| done.to_string());
        self.status.failed_indexes = indexed.failed.as_ref().map(ToString::to_string);
    }

    /// Says how the Job will end, before its Pods are let go; gives back how it then ends.
    fn announce(&mut self, verdict: &Verdict, now: Timestamp) -> Verdict {
        let conditions = self.status.conditions.get_or_insert_default();
        let known = conditions.iter().any(|it| it.type_ == verdict.type_ && it.status == "True");
        let announced = matches!(verdict.type_, "FailureTarget" | "SuccessCriteriaMet");
        if announced && !known {
            conditions.push(condition(verdict.type_, &verdict.reason, &verdict.message, now));
        }
        let type_ = if verdict.is_success() { "Complete" } else { "Failed" };
        Verdict { type_, ..verdict.clone() }
    }

    /// The status once Pods have lost their finalizers, and how the Job has ended, if it has.
    pub(super) fn after(
        mut self,
        released: &[String],
        now: Timestamp,
    ) -> (JobStatus, Option<Verdict>) {
        released.iter().for_each(|uid| _ = self.held.remove(uid));
        count(&mut self.status, &self.held);
        let uncounted = self.status.uncounted_terminated_pods.as_ref().map_or(0, length);
        let waits = self.more || uncounted > 0 || self.status.terminating != Some(0);
        let Some(end) = self.end.filter(|_| !waits) else { return (self.status, None) };
        let conditions = self.status.conditions.get_or_insert_default();
        conditions.retain(|it| it.type_ != end.type_);
        conditions.push(condition(end.type_, &end.reason, &end.message, now));
        if end.type_ == "Complete" {
            self.status.completion_time = Some(time(now));
        }
        (self.status, Some(end))
    }
}

/// Whether a Pod can lose its finalizer: it has ended or its Job does, and nobody has to learn from
/// it how often its index failed.
fn can_release(
    now: &Situation<'_>,
    verdict: Option<&Verdict>,
    pod: &Arc<Pod>,
    failed: bool,
) -> bool {
    if now.job.metadata.deletion_timestamp.is_some() || verdict.is_some() || has_succeeded(pod) {
        return true;
    }
    let delayed = now.indexed.as_ref().zip(index_of(pod)).and_then(|(indexed, index)| {
        indexed.delayed.get(&index).filter(|delayed| uid_of(delayed) == uid_of(pod))
    });
    failed && delayed.is_none()
}

/// Counts the Pods on the list that have lost their finalizer, and takes them off it.
fn count(status: &mut JobStatus, held: &HashSet<String>) {
    let list = status.uncounted_terminated_pods.get_or_insert_default();
    let succeeded = take(&mut list.succeeded, held);
    let failed = take(&mut list.failed, held);
    let more = |count: Option<i32>, more: i32| nonzero(count.unwrap_or(0).saturating_add(more));
    status.succeeded = more(status.succeeded, succeeded);
    status.failed = more(status.failed, failed);
}

fn take(list: &mut Option<Vec<String>>, held: &HashSet<String>) -> i32 {
    let Some(uids) = list else { return 0 };
    let before = uids.len();
    uids.retain(|uid| held.contains(uid));
    let taken = before - uids.len();
    if uids.is_empty() {
        *list = None;
    }
    number(taken)
}

fn add(list: &mut Option<Vec<String>>, uid: String) {
    let list = list.get_or_insert_default();
    if !list.contains(&uid) {
        list.push(uid);
    }
}

fn contains(list: &Option<Vec<String>>, uid: &str) -> bool {
    list.iter().flatten().any(|known| known == uid)
}

fn length(list: &UncountedTerminatedPods) -> usize {
    list.succeeded.as_ref().map_or(0, Vec::len) + list.failed.as_ref().map_or(0, Vec::len)
}

fn nonzero(count: i32) -> Option<i32> {
    (count != 0).then_some(count) // Kubernetes leaves zeros out
}

fn condition(type_: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: type_.into(),
        status: "True".into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_probe_time: Some(time(now)),
        last_transition_time: Some(time(now)),
    }
}

/// What is said when a Job is suspended or goes on: the Event's reason and note.
pub(super) type Told = (&'static str, &'static str);

/// Says whether the Job is suspended, if that is new; when it is, its time stops.
pub(super) fn suspend(status: &mut JobStatus, suspended: bool, now: Timestamp) -> Option<Told> {
    let (holds, reason, message, told) = match suspended {
        true => ("True", "JobSuspended", "Job suspended", ("Suspended", "Job suspended")),
        false => ("False", "JobResumed", "Job resumed", ("Resumed", "Job resumed")),
    };
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions.iter_mut().find(|condition| condition.type_ == "Suspended");
    let new = JobCondition { status: holds.into(), ..condition("Suspended", reason, message, now) };
    let is_said = known.as_deref().is_some_and(|known| {
        (&known.status, &known.reason, &known.message) == (&new.status, &new.reason, &new.message)
    });
    let changed = match known {
        _ if is_said => false,
        Some(known) => {
            *known = new;
            true
        }
        None if suspended => {
            conditions.push(new);
            true
        }
        None => false, // nobody needs to be told that it never was
    };
    if status.conditions.as_ref().is_some_and(Vec::is_empty) {
        status.conditions = None;
    }
    if !changed {
        return None;
    }
    status.start_time = (!suspended).then(|| time(now));
    Some(told)
}
