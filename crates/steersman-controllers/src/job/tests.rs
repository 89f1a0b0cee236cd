use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::backoff::Record;
use super::counted::Counted;
use super::plan::{Situation, Work};
use super::policy::{self, Failure};
use super::template::new_pod;
use super::tracking::{self, Counts};

/// So many seconds after noon.
fn at(seconds: i64) -> Timestamp {
    let noon: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    noon + SignedDuration::from_secs(seconds)
}

fn job(spec: &Value, status: &Value) -> Job {
    let mut job = json!({
        "metadata": {"name": "work", "namespace": "default", "uid": "j1"},
        "spec": {
            "parallelism": 2,
            "completions": 4,
            "backoffLimit": 6,
            "template": {"metadata": {"labels": {"app": "work"}}, "spec": {
                "restartPolicy": "Never", "containers": [{"name": "main"}],
            }},
        },
        "status": status,
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    serde_json::from_value(job).unwrap()
}

fn indexed(spec: &Value) -> Value {
    let mut all = json!({"completionMode": "Indexed"});
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

/// A Pod in a phase, that ended at a moment if it has.
fn pod(name: &str, phase: &str, seconds: i64) -> Pod {
    let code = i32::from(phase == "Failed") * 3;
    let ended = json!({"terminated": {"exitCode": code, "finishedAt": at(seconds).to_string()}});
    let running = json!({"running": {}});
    let pod = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": name,
            "creationTimestamp": at(0).to_string(),
            "finalizers": ["batch.kubernetes.io/job-tracking"],
        },
        "spec": {"containers": [{"name": "main"}], "nodeName": "node-0"},
        "status": {"phase": phase, "containerStatuses": [{
            "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": if phase == "Running" { running } else { ended },
        }]},
    });
    serde_json::from_value(pod).unwrap()
}

fn with_index(mut pod: Pod, index: u32, failures: i32) -> Pod {
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert("batch.kubernetes.io/job-completion-index".into(), index.to_string());
    annotations.insert("batch.kubernetes.io/job-index-failure-count".into(), failures.to_string());
    pod
}

fn counted(mut pod: Pod) -> Pod {
    pod.metadata.finalizers = None;
    pod
}

fn deleted(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(super::facts::time(at(0)));
    pod
}

fn all(pods: impl IntoIterator<Item = Pod>) -> Vec<Arc<Pod>> {
    pods.into_iter().map(Arc::new).collect()
}

fn look<T>(job: &Job, pods: &[Arc<Pod>], seconds: i64, see: impl FnOnce(Situation<'_>) -> T) -> T {
    let spec = job.spec.as_ref().unwrap();
    see(Situation::new(job, spec, pods, &Record::default(), at(seconds)))
}

fn work(job: &Job, pods: &[Arc<Pod>], seconds: i64) -> Work {
    look(job, pods, seconds, |now| now.work())
}

fn verdict(job: &Job, pods: &[Arc<Pod>], seconds: i64) -> Option<(String, String)> {
    let verdict = look(job, pods, seconds, |now| now.verdict())?;
    Some((verdict.reason, verdict.message))
}

fn reason(job: &Job, pods: &[Arc<Pod>], seconds: i64) -> Option<String> {
    verdict(job, pods, seconds).map(|(reason, _)| reason)
}

#[test]
fn a_job_keeps_as_many_pods_active_as_are_needed_and_allowed() {
    let running = |count: usize| all((0..count).map(|n| pod(&format!("p{n}"), "Running", 0)));
    for (spec, status, pods, created) in [
        (json!({}), json!({}), 0, 2),
        (json!({}), json!({}), 1, 1),
        (json!({}), json!({"succeeded": 3}), 0, 1),
        (json!({"completions": null}), json!({}), 0, 2),
        (json!({"parallelism": 0}), json!({}), 0, 0),
        (json!({"suspend": true}), json!({}), 0, 0),
    ] {
        let expected = match created {
            0 => Work::Nothing,
            count => Work::Create(vec![None; count]),
        };
        assert_eq!(work(&job(&spec, &status), &running(pods), 0), expected, "{spec} {status}");
    }
    let enough = job(&json!({"completions": null}), &json!({"succeeded": 1}));
    assert_eq!(work(&enough, &running(1), 0), Work::Nothing, "what runs runs on");
    let count = |spec: Value, pods: usize| match work(&job(&spec, &json!({})), &running(pods), 0) {
        Work::Delete(pods) => pods.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(count(json!({}), 5), 3);
    assert_eq!(count(json!({"suspend": true}), 2), 2);
}

#[test]
fn pods_that_failed_are_replaced_ever_later() {
    let job = job(&json!({}), &json!({}));
    let failed = |count: usize| all((0..count).map(|n| pod(&format!("p{n}"), "Failed", 0)));
    let waits = |seconds: u64| Work::Wait(Duration::from_secs(seconds));
    for (failures, wait) in [(1, 10), (2, 20), (3, 40), (6, 320)] {
        assert_eq!(work(&job, &failed(failures), 0), waits(wait), "{failures}");
    }
    assert_eq!(work(&job, &failed(1), 9), waits(1));
    assert_eq!(work(&job, &failed(1), 10), Work::Create(vec![None; 2]));
    let mut pods = failed(3);
    pods.push(Arc::new(pod("good", "Succeeded", 1)));
    assert_eq!(work(&job, &pods, 1), Work::Create(vec![None; 2]), "a success begins anew");
    let many = Record::default().after(&[], &failed(20));
    assert_eq!(many.remaining(at(0)), Some(Duration::from_secs(600)));
}

#[test]
fn a_job_fails_when_too_many_pods_did_or_its_time_is_up() {
    let failed = |count: usize| all((0..count).map(|n| pod(&format!("p{n}"), "Failed", 0)));
    let limited = job(&json!({"backoffLimit": 2}), &json!({}));
    assert_eq!(verdict(&limited, &failed(2), 0), None);
    let message = "Job has reached the specified backoff limit";
    let exceeded = Some(("BackoffLimitExceeded".to_owned(), message.to_owned()));
    assert_eq!(verdict(&limited, &failed(3), 0), exceeded);
    let known = json!({"failed": 1, "uncountedTerminatedPods": {"failed": ["p0"]}});
    let known = job(&json!({"backoffLimit": 2}), &known);
    assert_eq!(verdict(&known, &failed(1), 0), None, "nothing is counted twice");
    assert_eq!(verdict(&known, &failed(2), 0), exceeded);
    let started = json!({"startTime": at(0).to_string()});
    let hurried = job(&json!({"activeDeadlineSeconds": 60}), &started);
    assert_eq!(verdict(&hurried, &[], 59), None);
    let message = "Job was active longer than specified deadline";
    let late = Some(("DeadlineExceeded".to_owned(), message.to_owned()));
    assert_eq!(verdict(&hurried, &[], 60), late);
    let asleep = job(&json!({"activeDeadlineSeconds": 60, "suspend": true}), &started);
    assert_eq!(verdict(&asleep, &[], 3600), None);
}

#[test]
fn containers_that_are_restarted_in_their_pods_count_towards_the_limit() {
    let template =
        json!({"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main"}]}});
    let job = job(&json!({"backoffLimit": 3, "template": template}), &json!({}));
    let restarted = |times: i32| {
        let mut pod = pod("p", "Running", 0);
        pod.status.as_mut().unwrap().container_statuses.as_mut().unwrap()[0].restart_count = times;
        all([pod])
    };
    assert_eq!(reason(&job, &restarted(2), 0), None);
    assert_eq!(reason(&job, &restarted(3), 0).as_deref(), Some("BackoffLimitExceeded"));
    let often = [restarted(i32::MAX), restarted(i32::MAX)].concat();
    assert_eq!(reason(&job, &often, 0).as_deref(), Some("BackoffLimitExceeded"));
}

#[test]
fn a_pod_that_is_being_deleted_is_replaced_at_once_or_when_it_has_ended() {
    let pods = all([deleted(pod("p", "Running", 0))]);
    assert!(matches!(work(&job(&json!({}), &json!({})), &pods, 3600), Work::Create(_)));
    let patient = json!({"podReplacementPolicy": "Failed", "parallelism": 1});
    assert_eq!(work(&job(&patient, &json!({})), &pods, 3600), Work::Nothing);
}

#[test]
fn an_indexed_job_works_on_the_first_indexes_that_are_open() {
    let job = job(&indexed(&json!({"completions": 6})), &json!({"completedIndexes": "0,2"}));
    let pods = all([with_index(pod("a", "Running", 0), 1, 0)]);
    assert_eq!(work(&job, &pods, 0), Work::Create(vec![Some(3)]));
    let twice = all([
        with_index(pod("a", "Running", 0), 1, 0),
        with_index(pod("b", "Pending", 0), 1, 0),
        pod("without", "Running", 0),
        with_index(pod("beyond", "Running", 0), 9, 0),
    ]);
    let Work::Delete(gone) = work(&job, &twice, 0) else { panic!("some are too many") };
    let gone: HashSet<_> = gone.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
    assert_eq!(gone, HashSet::from(["b".into(), "without".into(), "beyond".into()]));
}

#[test]
fn each_index_can_have_a_limit_of_its_own() {
    let spec = json!({"completions": 3, "parallelism": 3, "backoffLimitPerIndex": 1});
    let job_of = |more: Value| {
        let mut spec = indexed(&spec);
        more.as_object().unwrap().iter().for_each(|(key, value)| spec[key] = value.clone());
        job(&spec, &json!({}))
    };
    let plain = job_of(json!({}));
    let once = all([with_index(pod("a", "Failed", 0), 0, 0)]);
    assert_eq!(work(&plain, &once, 1), Work::Create(vec![Some(1), Some(2)]), "index 0 waits");
    assert_eq!(work(&plain, &once, 10), Work::Create(vec![Some(0), Some(1), Some(2)]));
    let replacement = look(&plain, &once, 10, |now| {
        new_pod(now.job, now.spec, now.indexed.as_ref(), Some(0)).metadata.annotations.unwrap()
    });
    assert_eq!(replacement["batch.kubernetes.io/job-index-failure-count"], "1");
    let twice = all([with_index(pod("a", "Failed", 0), 0, 1)]);
    assert_eq!(work(&plain, &twice, 100), Work::Create(vec![Some(1), Some(2)]), "it has failed");
    assert_eq!(reason(&plain, &twice, 0), None);
    let strict = job_of(json!({"maxFailedIndexes": 0}));
    assert_eq!(reason(&strict, &twice, 0).as_deref(), Some("MaxFailedIndexesExceeded"));
    let over = all([
        with_index(pod("a", "Failed", 0), 0, 1),
        with_index(pod("b", "Succeeded", 0), 1, 0),
        with_index(pod("c", "Succeeded", 0), 2, 0),
    ]);
    let told = Some(("FailedIndexes".into(), "Job has failed indexes".into()));
    assert_eq!(verdict(&plain, &over, 0), told);
}

#[test]
fn a_policy_says_what_a_failed_pod_means() {
    let policy = json!({"podFailurePolicy": {"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}},
    ]}});
    let job = job(&policy, &json!({}));
    let spec = job.spec.as_ref().unwrap();
    let failed = pod("p", "Failed", 0);
    let why =
        "Container main for pod default/p failed with exit code 3 matching FailJob rule at index 1";
    assert_eq!(policy::failure(spec, &failed), Failure::FailsJob(why.into()));
    let told = Some(("PodFailurePolicy".into(), why.into()));
    assert_eq!(verdict(&job, &all([failed.clone()]), 0), told);
    let mut disrupted = failed;
    let condition = json!([{"type": "DisruptionTarget", "status": "True"}]);
    disrupted.status.as_mut().unwrap().conditions = serde_json::from_value(condition).unwrap();
    assert_eq!(policy::failure(spec, &disrupted), Failure::Ignored);
    assert_eq!(verdict(&job, &all([disrupted]), 0), None);
}

#[test]
fn a_success_policy_says_when_enough_has_succeeded() {
    for (rules, done, met) in [
        (json!([{"succeededIndexes": "0,2"}]), "0", None),
        (json!([{"succeededIndexes": "0,2"}]), "0,2", Some("Matched rules at index 0")),
        (
            json!([{"succeededIndexes": "1-3", "succeededCount": 1}]),
            "2",
            Some("Matched rules at index 0"),
        ),
        (
            json!([{"succeededCount": 3}, {"succeededCount": 2}]),
            "1,3",
            Some("Matched rules at index 1"),
        ),
    ] {
        let spec = indexed(&json!({"successPolicy": {"rules": rules}}));
        let job = job(&spec, &json!({"completedIndexes": done}));
        let verdict = verdict(&job, &[], 0);
        let expected = met.map(|message| ("SuccessPolicy".to_owned(), message.to_owned()));
        assert_eq!(verdict, expected, "{rules} {done}");
    }
}

/// The status before Pods lose their finalizers and after these have, and which are to.
fn tracked(job: &Job, pods: &[Arc<Pod>], lost: &[&str]) -> (JobStatus, Vec<String>, JobStatus) {
    look(job, pods, 10, |now| {
        let active = i32::try_from(now.active.len()).unwrap();
        let counts = Counts { active, ready: 0, terminating: 0 };
        let verdict = now.is_complete(active).then(super::plan::Verdict::completed);
        let tracking = tracking::track(&now, verdict.as_ref(), counts);
        let before = tracking.status.clone();
        let named = |pod: &Arc<Pod>| pod.metadata.name.clone().unwrap();
        let release = tracking.release.iter().map(named).collect();
        let lost: Vec<String> = lost.iter().map(|uid| (*uid).to_owned()).collect();
        (before, release, tracking.after(&lost, at(10)).0)
    })
}

fn listed(status: &JobStatus) -> (Vec<String>, Vec<String>) {
    let list = status.uncounted_terminated_pods.clone().unwrap();
    (list.succeeded.unwrap_or_default(), list.failed.unwrap_or_default())
}

#[test]
fn pods_are_listed_then_let_go_then_counted() {
    let job_of = |status: &Value| job(&json!({}), status);
    let pods = all([pod("good", "Succeeded", 5), pod("bad", "Failed", 5), pod("on", "Running", 0)]);
    let (before, release, after) = tracked(&job_of(&json!({})), &pods, &["good", "bad"]);
    assert_eq!(listed(&before), (vec!["good".into()], vec!["bad".into()]));
    assert_eq!((before.succeeded, before.failed), (None, None));
    assert_eq!(release, ["good", "bad"]);
    assert_eq!(listed(&after), (vec![], vec![]));
    assert_eq!((after.succeeded, after.failed, after.active), (Some(1), Some(1), Some(1)));
    // What was listed when the controller died is counted by the next one, once.
    let died = json!({"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["good", "gone"]}});
    let pods = all([pod("good", "Succeeded", 5), counted(pod("old", "Succeeded", 5))]);
    let (before, release, after) = tracked(&job_of(&died), &pods, &[]);
    assert_eq!((before.succeeded, listed(&before).0), (Some(2), vec!["good".to_owned()]));
    assert_eq!(release, ["good"]);
    assert_eq!((after.succeeded, listed(&after).0), (Some(2), vec!["good".to_owned()]));
}

#[test]
fn a_job_is_complete_when_all_are_counted_and_says_so_before() {
    let job = job(&json!({"completions": 1}), &json!({}));
    let pods = all([pod("good", "Succeeded", 5)]);
    let types = |status: &JobStatus| -> Vec<String> {
        status.conditions.iter().flatten().map(|condition| condition.type_.clone()).collect()
    };
    let (before, _, after) = tracked(&job, &pods, &["good"]);
    assert_eq!(types(&before), ["SuccessCriteriaMet"]);
    assert_eq!(types(&after), ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(after.completion_time, Some(super::facts::time(at(10))));
    let (_, _, waiting) = tracked(&job, &pods, &[]);
    assert_eq!(types(&waiting), ["SuccessCriteriaMet"], "one is not counted");
}

#[test]
fn an_indexed_job_counts_indexes() {
    let status = json!({"completedIndexes": "1", "succeeded": 1});
    let job = job(&indexed(&json!({})), &status);
    let pods = all([
        with_index(pod("a", "Succeeded", 5), 0, 0),
        with_index(pod("again", "Succeeded", 5), 1, 0),
        with_index(pod("beyond", "Succeeded", 5), 7, 0),
    ]);
    let (before, release, _) = tracked(&job, &pods, &[]);
    assert_eq!((before.succeeded, before.completed_indexes.as_deref()), (Some(2), Some("0,1")));
    assert_eq!(listed(&before), (vec![], vec![]));
    assert_eq!(release.len(), 3);
}

#[test]
fn suspending_stops_the_clock_and_is_told_once() {
    let mut status =
        JobStatus { start_time: Some(super::facts::time(at(0))), ..JobStatus::default() };
    assert_eq!(tracking::suspend(&mut status, false, at(1)), None, "it never was");
    assert_eq!(tracking::suspend(&mut status, true, at(1)), Some(("Suspended", "Job suspended")));
    assert_eq!(status.start_time, None);
    assert_eq!(tracking::suspend(&mut status, true, at(2)), None);
    status.conditions.as_mut().unwrap()[0].reason = Some("Preempted".into());
    assert_eq!(tracking::suspend(&mut status, true, at(2)), Some(("Suspended", "Job suspended")));
    assert_eq!(tracking::suspend(&mut status, false, at(3)), Some(("Resumed", "Job resumed")));
    assert_eq!(status.start_time, Some(super::facts::time(at(3))));
    let condition = &status.conditions.unwrap()[0];
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_deref()),
        ("False", Some("JobResumed"))
    );
}

#[test]
fn a_pod_of_an_indexed_job_knows_its_index() {
    let job = job(&indexed(&json!({})), &json!({}));
    let pod = new_pod(&job, job.spec.as_ref().unwrap(), None, Some(3));
    let key = "batch.kubernetes.io/job-completion-index";
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("work-3-"));
    assert_eq!(pod.metadata.labels.unwrap()[key], "3");
    assert_eq!(pod.metadata.annotations.unwrap()[key], "3");
    assert_eq!(pod.metadata.finalizers.unwrap(), ["batch.kubernetes.io/job-tracking"]);
    let spec = pod.spec.unwrap();
    assert_eq!(spec.hostname.as_deref(), Some("work-3"));
    let variable = &spec.containers[0].env.as_ref().unwrap()[0];
    assert_eq!(variable.name, "JOB_COMPLETION_INDEX");
    let field = variable.value_from.as_ref().unwrap().field_ref.as_ref().unwrap();
    assert_eq!(field.field_path, "metadata.labels['batch.kubernetes.io/job-completion-index']");
}

#[test]
fn a_late_cache_counts_nobody_twice() {
    let known = Counted::default();
    let job = job(&json!({}), &json!({"uncountedTerminatedPods": {"failed": ["unseen", "seen"]}}));
    let pods = all([pod("seen", "Failed", 0), pod("free", "Failed", 0)]);
    known.add(&job, &pods, &["free".to_owned()]);
    let mut late =
        all([pod("seen", "Failed", 0), pod("free", "Failed", 0), pod("unseen", "Failed", 0)]);
    let again: Vec<_> =
        known.correct("j1", &mut late).iter().map(|it| it.metadata.name.clone()).collect();
    assert_eq!(again, [Some("free".into()), Some("unseen".into())]);
    let held = |pods: &[Arc<Pod>]| {
        pods.iter().map(|it| super::facts::has_finalizer(it)).collect::<Vec<_>>()
    };
    assert_eq!(held(&late), [true, false, false]);
    known.forget("j1");
    assert!(known.correct("j1", &mut all([pod("free", "Failed", 0)])).is_empty());
}
