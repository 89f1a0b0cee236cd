//! How simulated Pods end.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::Result;
use steersman_testkit::Cluster;

use crate::objects::{is_ready, pod};

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

#[steersman::test(termination = Duration::from_secs(1))]
async fn a_pod_is_seen_terminating_for_a_moment(cluster: Cluster) -> Result<()> {
    cluster.client().create(&pod("web", &json!({}))).await?;
    cluster.eventually("web", is_ready).await?;
    let running: Pod = cluster.client().get("web").await?.unwrap();
    let grace = DeleteParams { grace_period_seconds: Some(60), ..DeleteParams::default() };
    cluster.client().delete::<Pod>("web", &grace).await?;
    cluster.advance(Duration::from_millis(900)).await;
    let ending: Pod = cluster.client().get("web").await?.expect("it takes a second to end");
    assert_eq!(ending.metadata.deletion_grace_period_seconds, Some(60));
    assert!(ending.metadata.deletion_timestamp.is_some());
    assert!(ending.metadata.generation > running.metadata.generation);
    let observed = ending.status.as_ref().unwrap().observed_generation;
    assert_eq!(observed, ending.metadata.generation);
    assert!(phase(&ending) == "Running" && is_ready(&ending));
    cluster.advance(Duration::from_millis(200)).await;
    assert!(cluster.client().get::<Pod>("web").await?.is_none());
    Ok(())
}

/// How many statuses of Pods were written, or asked to be.
async fn statuses_written(cluster: &Cluster) -> Result<u64> {
    let metrics = http::Request::get("/metrics").body(Vec::new())?;
    let metrics = cluster.client().kube().request_text(metrics).await?;
    let labels = [r#"resource="pods""#, r#"subresource="status""#, r#"verb="PATCH""#];
    let lines = metrics.lines().filter(|line| line.starts_with("apiserver_request_total"));
    let lines = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}

#[steersman::test]
async fn how_a_pod_is_is_written_once_for_each_change(cluster: Cluster) -> Result<()> {
    cluster.client().create(&pod("web", &json!({}))).await?;
    cluster.eventually("web", is_ready).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(statuses_written(&cluster).await?, 1, "it runs");
    cluster.client().delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.gone::<Pod>("web").await?;
    assert_eq!(statuses_written(&cluster).await?, 2, "its container has ended");
    Ok(())
}

#[steersman::test(termination = Duration::from_secs(10))]
async fn the_grace_period_cuts_the_moment_short(cluster: Cluster) -> Result<()> {
    let spec = json!({"terminationGracePeriodSeconds": 2});
    cluster.client().create(&pod("web", &spec)).await?;
    cluster.eventually("web", is_ready).await?;
    cluster.client().delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_millis(1900)).await;
    assert!(cluster.client().get::<Pod>("web").await?.is_some());
    cluster.advance(Duration::from_millis(200)).await;
    assert!(cluster.client().get::<Pod>("web").await?.is_none());
    Ok(())
}

#[steersman::test]
async fn a_pod_reports_that_its_containers_have_ended_before_it_goes(
    cluster: Cluster,
) -> Result<()> {
    let mut web = pod("web", &json!({}));
    web.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    cluster.client().create(&web).await?;
    cluster.eventually("web", is_ready).await?;
    cluster.client().delete::<Pod>("web", &DeleteParams::default()).await?;
    let ended = |pod: &Pod| {
        let status = pod.status.as_ref().unwrap();
        let containers = status.container_statuses.as_ref().unwrap();
        let state = containers[0].state.as_ref().unwrap();
        state.terminated.as_ref().is_some_and(|state| state.exit_code == 0)
            && phase(pod) == "Succeeded"
            && !is_ready(pod)
            && pod.metadata.deletion_grace_period_seconds == Some(0)
    };
    cluster.eventually("web", ended).await?;
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.client().patch::<Pod, _>("web", &release).await?;
    cluster.gone::<Pod>("web").await
}

#[steersman::test]
async fn a_pod_fails_when_its_deadline_is_over(cluster: Cluster) -> Result<()> {
    cluster.client().create(&pod("web", &json!({"activeDeadlineSeconds": 30}))).await?;
    cluster.eventually("web", is_ready).await?;
    cluster.advance(Duration::from_secs(25)).await;
    let web: Pod = cluster.client().get("web").await?.unwrap();
    assert_eq!(phase(&web), "Running");
    let failed = |pod: &Pod| phase(pod) == "Failed";
    tokio::time::timeout(Duration::from_secs(6), cluster.eventually("web", failed)).await??;
    let web: Pod = cluster.client().get("web").await?.unwrap();
    let status = web.status.unwrap();
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    assert!(status.message.unwrap().contains("longer than the specified deadline"));
    Ok(())
}
