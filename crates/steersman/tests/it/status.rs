//! Where a collected status goes, and what it leaves alone.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::conditions::ConditionType;
use steersman::controller::Builder;
use steersman::{Context, Controller, Next, Result};
use steersman_testkit::Cluster;

use crate::reconcile::{config_map, of_the_test};

/// A Pod that no scheduler and no node cares for.
fn pod() -> Pod {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "nobody",
        "containers": [{"name": "c", "image": "i"}]}});
    serde_json::from_value(pod).unwrap()
}

fn with_condition(name: &str) -> Value {
    json!({"conditions": [{"type": name, "status": "True"}]})
}

fn condition(pod: &Pod, name: &str) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|condition| condition.type_ == name)
}

/// Takes ten seconds between reading the Pod and reporting on it.
fn slow_reporter() -> Controller {
    reporting_slowly(Controller::of::<Pod>())
}

fn reporting_slowly(controller: Builder<Pod>) -> Controller {
    controller.named("reporter").reconcile(
        async |pod: Arc<Pod>, ctx: Context<Pod>| -> Result<Next> {
            let mut status = serde_json::to_value(&pod.status)?;
            let _ =
                tokio::time::timeout(Duration::from_secs(10), std::future::pending::<()>()).await;
            let ours = json!({"type": "Reported", "status": "True"});
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            if !condition(&pod, "Reported") {
                status["conditions"] = json!([conditions, vec![ours]].concat());
            }
            ctx.status(status);
            Ok(Next::Settled)
        },
    )
}

#[steersman::test]
async fn a_condition_that_another_adds_meanwhile_is_kept(cluster: Cluster) -> Result<()> {
    cluster.run(slow_reporter());
    cluster.client().create(&pod()).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let patch = Patch::Merge(json!({"status": with_condition("Other")}));
    cluster.client().patch_status::<Pod, _>("p", &patch).await?;
    cluster.eventually("p", |pod: &Pod| condition(pod, "Reported") && condition(pod, "Other")).await
}

/// Reports while somebody else changes the labels.
async fn report_beside_another(cluster: &Cluster, reporter: Controller) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(reporter);
    cluster.client().create(&pod()).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"by": "another"}}}));
    cluster.client().patch::<Pod, _>("p", &patch).await?;
    let record = records.recv().await?;
    assert!(!record.outcome.is_failure(), "{:?}", record.outcome);
    let now = cluster.client().get::<Pod>("p").await?.unwrap();
    assert!(condition(&now, "Reported"));
    assert_eq!(now.metadata.labels.unwrap()["by"], "another");
    Ok(())
}

#[steersman::test]
async fn a_status_is_written_though_another_changed_the_labels(cluster: Cluster) -> Result<()> {
    report_beside_another(&cluster, slow_reporter()).await
}

#[steersman::test]
async fn a_whole_status_is_written_though_another_changed_the_labels(
    cluster: Cluster,
) -> Result<()> {
    let reporter = reporting_slowly(Controller::of::<Pod>().updates_status());
    report_beside_another(&cluster, reporter).await
}

#[steersman::test]
async fn a_whole_status_does_not_undo_what_another_reports_meanwhile(
    cluster: Cluster,
) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(reporting_slowly(Controller::of::<Pod>().updates_status()));
    cluster.client().create(&pod()).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let patch = Patch::Merge(json!({"status": with_condition("Other")}));
    cluster.client().patch_status::<Pod, _>("p", &patch).await?;
    assert!(records.recv().await?.outcome.is_failure());
    cluster.eventually("p", |pod: &Pod| condition(pod, "Reported") && condition(pod, "Other")).await
}

#[steersman::test]
async fn status_never_reaches_another_object_of_the_same_name(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(slow_reporter());
    let first = cluster.client().create(&pod()).await?;
    cluster.advance(Duration::from_secs(5)).await;
    cluster.client().delete::<Pod>("p", &DeleteParams::default()).await?;
    let second = cluster.client().create(&pod()).await?;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    records.recv().await?;
    let now = cluster.client().get::<Pod>("p").await?.unwrap();
    assert!(!condition(&now, "Reported"), "the second Pod has the status of the first");
    Ok(())
}

#[steersman::test]
async fn a_kind_without_status_is_said_to_have_none(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            ctx.status(json!({"seen": true}));
            Ok(Next::Settled)
        },
    ));
    cluster.client().create(&config_map("a")).await?;
    let outcome = records.recv().await?.outcome.to_string();
    assert!(outcome.contains("lacks the status subresource"), "{outcome}");
    Ok(())
}

/// Tells that it has begun, works for ten seconds, and tells that it is done.
fn telling_twice(controller: Builder<Pod>) -> Controller {
    controller.named("teller").reconcile(async |pod: Arc<Pod>, ctx: Context<Pod>| -> Result<Next> {
        if pod.status.as_ref().is_some_and(|status| status.message.as_deref() == Some("done")) {
            return Ok(Next::Settled);
        }
        ctx.status(json!({"message": "working", "reason": "Begun"}));
        ctx.write_status().await?;
        let _ = tokio::time::timeout(Duration::from_secs(10), std::future::pending::<()>()).await;
        ctx.status(json!({"message": "done"}));
        Ok(Next::Settled)
    })
}

async fn told_twice(cluster: &Cluster, controller: Controller) -> Result<()> {
    cluster.run(controller);
    cluster.client().create(&pod()).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let told = async || -> Result<(Option<String>, Option<String>)> {
        let status = cluster.client().get::<Pod>("p").await?.unwrap().status.unwrap();
        Ok((status.message, status.reason))
    };
    assert_eq!(told().await?, (Some("working".to_owned()), Some("Begun".to_owned())));
    cluster.advance(Duration::from_secs(6)).await;
    // What the second does not say is gone, though the object that was read never had it.
    assert_eq!(told().await?, (Some("done".to_owned()), None));
    Ok(())
}

#[steersman::test]
async fn a_status_can_be_written_before_the_work_is_done(cluster: Cluster) -> Result<()> {
    told_twice(&cluster, telling_twice(Controller::of::<Pod>())).await
}

#[steersman::test]
async fn a_whole_status_can_be_written_before_the_work_is_done(cluster: Cluster) -> Result<()> {
    told_twice(&cluster, telling_twice(Controller::of::<Pod>().updates_status())).await
}

#[steersman::test]
async fn what_could_not_be_written_before_the_end_is_written_at_the_end(
    cluster: Cluster,
) -> Result<()> {
    let reporter = Controller::of::<Pod>().named("reporter").reconcile(
        async |pod: Arc<Pod>, ctx: Context<Pod>| -> Result<Next> {
            if condition(&pod, "Seen") {
                return Ok(Next::Settled);
            }
            ctx.status(json!({"message": "begun"}));
            // Nobody waits that long: it is given up while it is under way.
            let given_up = tokio::time::timeout(Duration::ZERO, ctx.write_status()).await;
            assert!(given_up.is_err(), "it cannot have been written at once");
            ctx.condition(ConditionType::new("Seen").yes("Looked", "somebody looked"));
            Ok(Next::Settled)
        },
    );
    cluster.run(reporter);
    cluster.client().create(&pod()).await?;
    let told = |pod: &Pod| {
        let message = pod.status.as_ref().and_then(|status| status.message.as_deref());
        message == Some("begun") && condition(pod, "Seen")
    };
    cluster.eventually("p", told).await
}
