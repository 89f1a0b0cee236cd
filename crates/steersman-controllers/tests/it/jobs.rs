//! Jobs run Pods until enough have succeeded, or too many failed.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Event as Counted, Pod, ResourceQuota};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{ListOptions, Result};
use steersman_testkit::{Cluster, Faults};

use crate::events::told;
use crate::objects::{all, all_become, counted, object};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn job(name: &str, image: &str, spec: &Value) -> Job {
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": image}],
        }}},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    object(job)
}

fn has(job: &Job, type_: &str) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == type_ && it.status == "True")
}

fn reason(job: &Job, type_: &str) -> Option<String> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)?.reason.clone()
}

async fn status(cluster: &Cluster, name: &str) -> Result<JobStatus> {
    let job: Option<Job> = cluster.client().get(name).await?;
    Ok(job.and_then(|job| job.status).unwrap_or_default())
}

pub(crate) async fn complete(cluster: &Cluster, name: &str) -> Result<JobStatus> {
    cluster.eventually(name, |job: &Job| has(job, "Complete")).await?;
    status(cluster, name).await
}

pub(crate) async fn failed(cluster: &Cluster, name: &str) -> Result<JobStatus> {
    cluster.eventually(name, |job: &Job| has(job, "Failed")).await?;
    status(cluster, name).await
}

pub(crate) fn has_finalizer(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|it| it == "batch.kubernetes.io/job-tracking")
}

#[steersman::test]
async fn a_job_runs_its_pods_to_completion_and_tells_of_it(cluster: Cluster) -> Result<()> {
    let spec = json!({"completions": 5, "parallelism": 2});
    cluster.client().create(&job("sum", "steersman.dev/exit:0-after-10s", &spec)).await?;
    cluster.advance(5 * SECOND).await;
    let first = status(&cluster, "sum").await?;
    assert_eq!((first.active, first.ready, first.terminating), (Some(2), Some(2), Some(0)));
    assert!(all::<Pod>(&cluster).await?.iter().all(has_finalizer));
    let done = complete(&cluster, "sum").await?;
    assert_eq!((done.succeeded, done.failed, done.active), (Some(5), None, None));
    assert_eq!((done.ready, done.terminating), (Some(0), Some(0)));
    assert!(done.completion_time.is_some() && done.start_time < done.completion_time);
    let types: Vec<_> = done.conditions.iter().flatten().map(|it| it.type_.as_str()).collect();
    assert_eq!(types, ["SuccessCriteriaMet", "Complete"]);
    let pods = all::<Pod>(&cluster).await?;
    assert!(pods.len() == 5 && !pods.iter().any(has_finalizer));
    let mut expected: Vec<String> = pods
        .iter()
        .filter_map(|pod| pod.metadata.name.clone())
        .map(|name| format!("job-controller Normal SuccessfulCreate: Created pod: {name}"))
        .collect();
    expected.push("job-controller Normal Completed: Job completed".into());
    expected.sort();
    assert_eq!(told(&cluster, "Job").await?, expected);
    let tracked = "terminated_pods_tracking_finalizer_total";
    for (name, count) in [
        (r#"job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"}"#, 5.0),
        (r#"job_pods_finished_total{completion_mode="NonIndexed",result="failed"}"#, 0.0),
        (r#"job_pods_creation_total{reason="new",status="succeeded"}"#, 5.0),
        (&format!(r#"{tracked}{{event="add"}}"#), 5.0),
        (&format!(r#"{tracked}{{event="delete"}}"#), 5.0),
        (
            r#"jobs_finished_total{completion_mode="NonIndexed",result="succeeded",reason="CompletionsReached"}"#,
            1.0,
        ),
    ] {
        let name = format!("job_controller_{name}");
        assert_eq!(counted(&cluster, &name).await?, Some(count), "{name}");
    }
    for action in ["tracking", "pods_created"] {
        let labels =
            format!(r#"{{completion_mode="NonIndexed",result="success",action="{action}"}}"#);
        for name in ["job_syncs_total", "job_sync_duration_seconds_count"] {
            let name = format!("job_controller_{name}{labels}");
            assert!(counted(&cluster, &name).await? >= Some(1.0), "{name}");
        }
    }
    Ok(())
}

#[steersman::test]
async fn a_job_fails_after_its_limit_and_waits_longer_each_time(cluster: Cluster) -> Result<()> {
    let spec = json!({"backoffLimit": 3});
    cluster.client().create(&job("bad", "steersman.dev/exit:7", &spec)).await?;
    let mut counts = Vec::new();
    for seconds in [1, 10, 20, 40] {
        cluster.advance(seconds * SECOND).await;
        counts.push(all::<Pod>(&cluster).await?.len());
    }
    assert_eq!(counts, [1, 2, 3, 4]);
    let failed = failed(&cluster, "bad").await?;
    assert_eq!((failed.failed, failed.succeeded), (Some(4), None));
    let types: Vec<_> = failed.conditions.iter().flatten().map(|it| it.type_.as_str()).collect();
    assert_eq!(types, ["FailureTarget", "Failed"]);
    let event =
        "job-controller Warning BackoffLimitExceeded: Job has reached the specified backoff limit";
    assert!(told(&cluster, "Job").await?.contains(&event.to_owned()));
    Ok(())
}

#[steersman::test]
async fn a_job_that_fails_now_and_then_completes_all_the_same(cluster: Cluster) -> Result<()> {
    cluster.pods().labelled("job-name", "flaky").times(3).exits(1);
    cluster.client().create(&job("flaky", "steersman.dev/exit:0-after-1s", &json!({}))).await?;
    let done = complete(&cluster, "flaky").await?;
    assert_eq!((done.succeeded, done.failed), (Some(1), Some(3)));
    Ok(())
}

#[steersman::test]
async fn a_job_whose_time_is_up_fails_and_ends_its_pods(cluster: Cluster) -> Result<()> {
    let spec = json!({"activeDeadlineSeconds": 60, "parallelism": 2});
    cluster.client().create(&job("slow", "nginx", &spec)).await?;
    cluster.advance(59 * SECOND).await;
    assert_eq!(status(&cluster, "slow").await?.active, Some(2));
    cluster.advance(2 * SECOND).await;
    let failed = failed(&cluster, "slow").await?;
    assert_eq!((failed.failed, failed.active), (Some(2), None));
    let slow: Job = cluster.client().get("slow").await?.unwrap();
    assert_eq!(reason(&slow, "Failed").as_deref(), Some("DeadlineExceeded"));
    all_become(&cluster, |pods: &[Pod]| pods.is_empty()).await?;
    Ok(())
}

#[steersman::test]
async fn a_job_is_suspended_and_resumed(cluster: Cluster) -> Result<()> {
    let spec = json!({"suspend": true, "parallelism": 2, "completions": 2});
    cluster.client().create(&job("nap", "steersman.dev/exit:0-after-60s", &spec)).await?;
    cluster.eventually("nap", |job: &Job| has(job, "Suspended")).await?;
    assert!(all::<Pod>(&cluster).await?.is_empty());
    assert_eq!(status(&cluster, "nap").await?.start_time, None);
    let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
    cluster.client().patch::<Job, _>("nap", &suspend(false)).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 2).await?;
    cluster.client().patch::<Job, _>("nap", &suspend(true)).await?;
    all_become(&cluster, |pods: &[Pod]| pods.is_empty()).await?;
    let asleep = status(&cluster, "nap").await?;
    assert_eq!((asleep.active, asleep.failed, asleep.start_time), (None, None, None));
    cluster.client().patch::<Job, _>("nap", &suspend(false)).await?;
    let done = complete(&cluster, "nap").await?;
    assert_eq!((done.succeeded, done.failed), (Some(2), None));
    let lines = told(&cluster, "Job").await?;
    for line in ["Suspended: Job suspended", "Resumed: Job resumed"] {
        assert!(lines.contains(&format!("job-controller Normal {line}")), "{line}: {lines:?}");
    }
    Ok(())
}

#[steersman::test]
async fn a_job_follows_its_parallelism_up_and_down(cluster: Cluster) -> Result<()> {
    cluster.client().create(&job("sum", "nginx", &json!({"completions": 9}))).await?;
    for parallelism in [3, 1, 0, 2] {
        let patch = Patch::Merge(json!({"spec": {"parallelism": parallelism}}));
        cluster.client().patch::<Job, _>("sum", &patch).await?;
        let wanted = usize::try_from(parallelism)?;
        all_become(&cluster, |pods: &[Pod]| pods.len() == wanted).await?;
        let active = (parallelism > 0).then_some(parallelism);
        cluster
            .eventually("sum", |job: &Job| {
                job.status
                    .as_ref()
                    .is_some_and(|it| it.active == active && it.terminating == Some(0))
            })
            .await?;
    }
    let status = status(&cluster, "sum").await?;
    assert_eq!((status.failed, status.succeeded), (None, None), "who has to go has not failed");
    Ok(())
}

#[steersman::test]
async fn an_indexed_job_completes_each_index_once(cluster: Cluster) -> Result<()> {
    let spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3});
    cluster.pods().labelled("job-name", "parts").times(1).exits(1);
    cluster.client().create(&job("parts", "steersman.dev/exit:0-after-5s", &spec)).await?;
    let done = complete(&cluster, "parts").await?;
    assert_eq!((done.succeeded, done.failed), (Some(3), Some(1)));
    assert_eq!(done.completed_indexes.as_deref(), Some("0-2"));
    let pods = all::<Pod>(&cluster).await?;
    for pod in &pods {
        let index =
            pod.metadata.annotations.as_ref().unwrap()["batch.kubernetes.io/job-completion-index"]
                .clone();
        let spec = pod.spec.as_ref().unwrap();
        assert_eq!(spec.hostname, Some(format!("parts-{index}")));
        assert!(pod.metadata.name.as_ref().unwrap().starts_with(&format!("parts-{index}-")));
    }
    assert_eq!(pods.len(), 4);
    Ok(())
}

#[steersman::test]
async fn indexes_fail_on_their_own(cluster: Cluster) -> Result<()> {
    let spec = json!({
        "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1,
    });
    cluster.pods().labelled("batch.kubernetes.io/job-completion-index", "1").exits(1);
    cluster.client().create(&job("parts", "steersman.dev/exit:0", &spec)).await?;
    let failed = failed(&cluster, "parts").await?;
    assert_eq!((failed.succeeded, failed.failed), (Some(1), Some(2)));
    assert_eq!(failed.completed_indexes.as_deref(), Some("0"));
    assert_eq!(failed.failed_indexes.as_deref(), Some("1"));
    let parts: Job = cluster.client().get("parts").await?.unwrap();
    assert_eq!(reason(&parts, "Failed").as_deref(), Some("FailedIndexes"));
    Ok(())
}

#[steersman::test]
async fn policies_decide_early(cluster: Cluster) -> Result<()> {
    let rules = json!([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]);
    let spec = json!({"podFailurePolicy": {"rules": rules}});
    cluster.client().create(&job("fatal", "steersman.dev/exit:42", &spec)).await?;
    failed(&cluster, "fatal").await?;
    let fatal: Job = cluster.client().get("fatal").await?.unwrap();
    assert_eq!(reason(&fatal, "Failed").as_deref(), Some("PodFailurePolicy"));
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
    });
    cluster.pods().labelled("batch.kubernetes.io/job-completion-index", "0").exits(0);
    cluster.client().create(&job("leader", "nginx", &spec)).await?;
    let done = complete(&cluster, "leader").await?;
    assert_eq!((done.succeeded, done.active, done.failed), (Some(1), None, None));
    for name in [
        r#"pod_failures_handled_by_failure_policy_total{action="FailJob"}"#,
        r#"jobs_finished_total{completion_mode="NonIndexed",result="failed",reason="PodFailurePolicy"}"#,
        r#"jobs_finished_total{completion_mode="Indexed",result="succeeded",reason="SuccessPolicy"}"#,
        r#"job_finished_indexes_total{status="succeeded",backoffLimit="global"}"#,
    ] {
        let name = format!("job_controller_{name}");
        assert_eq!(counted(&cluster, &name).await?, Some(1.0), "{name}");
    }
    Ok(())
}

#[steersman::test]
async fn pods_lose_their_finalizer_with_their_job(cluster: Cluster) -> Result<()> {
    for policy in [DeleteParams::background(), DeleteParams::foreground()] {
        let spec = json!({"parallelism": 3});
        cluster.client().create(&job("gone", "nginx", &spec)).await?;
        all_become(&cluster, |pods: &[Pod]| pods.len() == 3).await?;
        cluster.client().delete::<Job>("gone", &policy).await?;
        cluster.gone::<Job>("gone").await?;
        all_become(&cluster, |pods: &[Pod]| pods.is_empty()).await?;
    }
    cluster.client().create(&job("left", "nginx", &json!({}))).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 1).await?;
    cluster.client().delete::<Job>("left", &DeleteParams::orphan()).await?;
    cluster.gone::<Job>("left").await?;
    let free = |pods: &[Pod]| pods.len() == 1 && !pods.iter().any(has_finalizer);
    all_become(&cluster, free).await?;
    Ok(())
}

#[steersman::test]
async fn a_job_that_somebody_else_ends_lets_its_pods_go(cluster: Cluster) -> Result<()> {
    cluster.client().create(&job("ended", "nginx", &json!({}))).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 1 && pods.iter().all(has_finalizer)).await?;
    cluster.advance(5 * SECOND).await;
    let said = |type_: &str| json!({"type": type_, "status": "True", "reason": "Test"});
    let conditions = [said("FailureTarget"), said("Failed")];
    let status = json!({"active": 0, "ready": 0, "terminating": 0, "conditions": conditions});
    let ended = Patch::Merge(json!({"status": status}));
    cluster.client().patch_status::<Job, _>("ended", &ended).await?;
    let free = |pods: &[Pod]| pods.len() == 1 && !pods.iter().any(has_finalizer);
    all_become(&cluster, free).await?;
    Ok(())
}

#[steersman::test]
async fn a_job_of_another_controller_is_left_alone(cluster: Cluster) -> Result<()> {
    let spec = json!({"managedBy": "example.com/other"});
    cluster.client().create(&job("other", "nginx", &spec)).await?;
    cluster.advance(60 * SECOND).await;
    assert!(all::<Pod>(&cluster).await?.is_empty());
    let name = r#"jobs_by_external_controller_total{controller_name="example.com/other"}"#;
    assert_eq!(counted(&cluster, &format!("job_controller_{name}")).await?, Some(1.0));
    Ok(())
}

#[steersman::test]
async fn a_pod_deleted_by_somebody_counts_as_failed_and_is_replaced(
    cluster: Cluster,
) -> Result<()> {
    cluster.pods().labelled("job-name", "web").terminate_after(5 * SECOND);
    cluster.client().create(&job("web", "nginx", &json!({}))).await?;
    let pods = all_become(&cluster, |pods: &[Pod]| pods.len() == 1).await?;
    let name = pods[0].metadata.name.clone().unwrap();
    cluster.client().delete::<Pod>(name.as_str(), &DeleteParams::default()).await?;
    let replaced = |pods: &[Pod]| pods.len() == 1 && pods[0].metadata.name.as_ref() != Some(&name);
    all_become(&cluster, replaced).await?;
    assert_eq!(status(&cluster, "web").await?.failed, Some(1));
    Ok(())
}

#[steersman::test]
async fn a_finished_job_is_deleted_when_its_time_is_over(cluster: Cluster) -> Result<()> {
    let spec = json!({"ttlSecondsAfterFinished": 100});
    cluster.client().create(&job("short", "steersman.dev/exit:0", &spec)).await?;
    complete(&cluster, "short").await?;
    cluster.advance(95 * SECOND).await;
    assert!(cluster.client().get::<Job>("short").await?.is_some());
    let longer = Patch::Merge(json!({"spec": {"ttlSecondsAfterFinished": 200}}));
    cluster.client().patch::<Job, _>("short", &longer).await?;
    cluster.advance(100 * SECOND).await;
    assert!(cluster.client().get::<Job>("short").await?.is_some(), "it was given more time");
    cluster.advance(10 * SECOND).await;
    assert!(cluster.client().get::<Job>("short").await?.is_none());
    assert!(all::<Pod>(&cluster).await?.is_empty());
    let name = "ttl_after_finished_controller_job_deletion_duration_seconds_count";
    assert_eq!(counted(&cluster, name).await?, Some(1.0));
    Ok(())
}

#[steersman::test(which = "*,-job-controller".parse().unwrap())]
async fn nothing_is_counted_twice_or_never_on_a_bad_network(cluster: Cluster) -> Result<()> {
    for seed in 0..4 {
        let fork = cluster.fork().await?;
        fork.pods().labelled("job-name", "sum").times(3).exits(1);
        let faults = Faults::seeded(seed).all(0.1);
        let mut controllers = steersman_controllers::all().into_iter();
        fork.run_with(&faults, controllers.find(|it| it.name() == "job-controller").unwrap());
        let spec = json!({"completions": 10, "parallelism": 4, "backoffLimit": 20});
        fork.client().create(&job("sum", "steersman.dev/exit:0-after-1s", &spec)).await?;
        fork.advance(600 * SECOND).await;
        faults.heal();
        let done = complete(&fork, "sum").await?;
        let pods: Vec<Pod> = all(&fork).await?;
        let count = |phase: &str| {
            let is = |pod: &&Pod| {
                pod.status.as_ref().is_some_and(|it| it.phase.as_deref() == Some(phase))
            };
            i32::try_from(pods.iter().filter(is).count()).unwrap()
        };
        let counted = (done.succeeded.unwrap_or(0), done.failed.unwrap_or(0));
        assert_eq!(counted, (count("Succeeded"), count("Failed")), "{seed}");
        assert!(counted.0 >= 10 && counted.1 <= 3, "{seed}: {counted:?}");
        assert!(!pods.iter().any(has_finalizer), "{seed}");
    }
    Ok(())
}

#[steersman::test]
async fn a_job_that_cannot_make_pods_tries_again_after_seconds_and_within_a_minute(
    cluster: Cluster,
) -> Result<()> {
    let hard = json!({"pods": "0"});
    let quota: ResourceQuota = object(json!({
        "metadata": {"name": "none", "namespace": "default"}, "spec": {"hard": hard},
    }));
    cluster.client().create(&quota).await?;
    cluster.eventually("none", |quota: &ResourceQuota| json!(quota.status)["hard"] == hard).await?;
    cluster.client().create(&job("held", "steersman.dev/exit:0", &json!({}))).await?;
    let tries = async || -> Result<i32> {
        let events: Vec<Counted> =
            cluster.client().list(&ListOptions::namespace("default")).await?;
        let failed = |event: &&Counted| event.reason.as_deref() == Some("FailedCreate");
        Ok(events.iter().filter(failed).filter_map(|event| event.count).sum())
    };
    cluster.advance(11 * SECOND).await;
    // Its own status wakes it once more.
    assert_eq!(tries().await?, 5, "twice at once, and after 1, 3 and 7 seconds");
    cluster.advance(60 * 60 * SECOND).await;
    cluster.client().delete::<ResourceQuota>("none", &DeleteParams::default()).await?;
    cluster.advance(70 * SECOND).await;
    let held: Option<Job> = cluster.client().get("held").await?;
    assert!(held.is_some_and(|job| has(&job, "Complete")));
    Ok(())
}
