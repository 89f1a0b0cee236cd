//! Facts about Jobs and their Pods that several parts of the controller ask for.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pod;

/// Keeps a Pod until it has been counted.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Which of the completions of an indexed Job a Pod works on.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often Pods of the same index have failed before, and how often that did not count.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub(super) const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// The name of this controller in `spec.managedBy`.
const MANAGER: &str = "kubernetes.io/job-controller";

/// Who is responsible for a Job, if it says so.
pub(super) fn manager(job: &Job) -> Option<&str> {
    job.spec.as_ref()?.managed_by.as_deref()
}

/// Whether this controller is responsible for a Job.
pub(super) fn is_ours(job: &Job) -> bool {
    manager(job).is_none_or(|manager| manager == MANAGER)
}

/// The condition of a type, if it is true.
pub(crate) fn condition<'a>(job: &'a Job, type_: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// The condition that says how a Job has finished, if it has.
pub(crate) fn finished(job: &Job) -> Option<&JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ends = |it: &&JobCondition| matches!(it.type_.as_str(), "Complete" | "Failed");
    conditions.iter().filter(ends).find(|condition| condition.status == "True")
}

pub(super) fn is_suspended(spec: &JobSpec) -> bool {
    spec.suspend == Some(true)
}

pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

/// How many completions an indexed Job has.
pub(super) fn completions(spec: &JobSpec) -> u32 {
    u32::try_from(spec.completions.unwrap_or(0)).unwrap_or(0)
}

/// Whether Pods are replaced only once they have failed, not already while they are being deleted.
pub(super) fn replaces_only_failed(spec: &JobSpec) -> bool {
    spec.pod_replacement_policy.as_deref() == Some("Failed") || spec.pod_failure_policy.is_some()
}

pub(super) fn has_finalizer(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

pub(super) fn has_succeeded(pod: &Pod) -> bool {
    pod::phase(pod) == "Succeeded"
}

/// Whether a Pod counts as failed. One that is being deleted does, since it may never get as far,
/// unless Pods are replaced only once they have failed.
pub(super) fn has_failed(pod: &Pod, spec: &JobSpec) -> bool {
    match pod::phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        _ => !replaces_only_failed(spec) && pod.metadata.deletion_timestamp.is_some(),
    }
}

pub(super) fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Which completion a Pod works on, if it says so.
pub(super) fn index_of(pod: &Pod) -> Option<u32> {
    annotation(pod, COMPLETION_INDEX)?.parse().ok()
}

/// Which completion a Pod of a Job works on, if there is such a one.
pub(super) fn valid_index(pod: &Pod, spec: &JobSpec) -> Option<u32> {
    index_of(pod).filter(|index| *index < completions(spec))
}

/// How often Pods of the index of this one failed before it.
pub(super) fn failures_before(pod: &Pod) -> i32 {
    count(pod, FAILURES)
}

/// How often they failed and that did not count.
pub(super) fn ignored_before(pod: &Pod) -> i32 {
    count(pod, IGNORED_FAILURES)
}

fn count(pod: &Pod, key: &str) -> i32 {
    let count = annotation(pod, key).and_then(|text| text.parse().ok());
    count.filter(|count: &i32| *count >= 0).unwrap_or(0)
}

/// When a Pod finished: when its last container did, when it stopped being ready, when it was
/// deleted, or at least when it was created.
pub(super) fn finish_time(pod: &Pod) -> Timestamp {
    let not_ready = || {
        let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
        let ready = conditions.find(|it| it.type_ == "Ready" && it.status == "False")?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    };
    let deleted = || {
        let at = pod.metadata.deletion_timestamp.as_ref()?.0;
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        at.checked_sub(SignedDuration::from_secs(grace)).ok()
    };
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    containers_finished(pod)
        .or_else(not_ready)
        .or_else(deleted)
        .or(created)
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// When the last container ended, if all have: also those that only accompany others.
fn containers_finished(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let spec = pod.spec.as_ref()?;
    let stays = |name: &str| {
        let mut init = spec.init_containers.iter().flatten();
        init.any(|it| it.name == name && it.restart_policy.as_deref() == Some("Always"))
    };
    let init = status.init_container_statuses.iter().flatten().filter(|it| stays(&it.name));
    let all = status.container_statuses.iter().flatten().chain(init);
    let ended = |container: &ContainerStatus| {
        Some(container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0)
    };
    all.map(ended).collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// A moment as objects carry it, to the second.
pub(super) fn time(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
