//! Why did this reconcile? Every one can say, and it is remembered.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::{Context, Controller, Error, Manager, Next, Result};
use steersman_testkit::{Cluster, Settings, run_with};

use crate::logged::Logged;
use crate::reconcile::{config_map, of_the_test};

fn idle() -> Controller {
    Controller::of::<ConfigMap>()
        .only(of_the_test)
        .owns::<Secret>()
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled))
}

#[steersman::test]
async fn every_kind_of_change_is_told(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(idle());
    cluster.advance(Duration::from_secs(1)).await;
    cluster.client().create(&config_map("a")).await?;
    let mut causes = vec![records.recv().await?.causes.to_string()];
    let patches = [
        json!({"data": {"a": "b"}}),
        json!({"binaryData": {"b": "Yg=="}, "data": null, "metadata": {"labels": {"b": "c"}}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"annotations": {"a": "b"}, "labels": {"a": null}}}),
        json!({"metadata": {"finalizers": ["example.com/a"]}}),
    ];
    for patch in patches {
        cluster.client().patch::<ConfigMap, _>("a", &Patch::Merge(patch)).await?;
        causes.push(records.recv().await?.causes.to_string());
    }
    cluster.client().delete::<ConfigMap>("a", &DeleteParams::default()).await?;
    causes.push(records.recv().await?.causes.to_string());
    let expected = [
        "created",
        "changed its data",
        "changed its labels, data, binaryData",
        "changed its labels",
        "changed its labels, annotations",
        "changed its finalizers",
        "is being deleted",
    ];
    assert_eq!(causes, expected.map(|change| format!("ConfigMap default/a {change}")));
    Ok(())
}

#[test]
fn spec_and_status_are_told_apart() -> Result<()> {
    run_with(Settings::bare(1), async |cluster: Cluster| {
        let mut records = cluster.reconciles();
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 1,
            "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        cluster.client().create::<Deployment>(&serde_json::from_value(deployment)?).await?;
        cluster.run(
            Controller::of::<Deployment>()
                .reconcile(async |_: Arc<Deployment>, _: Context<Deployment>| Ok(Next::Settled)),
        );
        let mut causes = vec![records.recv().await?.causes.to_string()];
        let spec = Patch::Merge(json!({"spec": {"replicas": 2}}));
        cluster.client().patch::<Deployment, _>("web", &spec).await?;
        causes.push(records.recv().await?.causes.to_string());
        let status = Patch::Merge(json!({"status": {"observedGeneration": 2}}));
        cluster.client().patch_status::<Deployment, _>("web", &status).await?;
        causes.push(records.recv().await?.causes.to_string());
        let expected = ["was there at the start", "changed its spec", "changed its status"];
        assert_eq!(causes, expected.map(|change| format!("Deployment default/web {change}")));
        Ok(())
    })
}

#[steersman::test]
async fn reconciles_are_numbered_and_remembered_with_their_causes(cluster: Cluster) -> Result<()> {
    let controller = Controller::of::<ConfigMap>().named("stubborn").only(of_the_test).reconcile(
        async |map: Arc<ConfigMap>, _: Context<ConfigMap>| -> Result<Next> {
            match map.metadata.name.as_deref() {
                Some("fails") => Err(Error::terminal("makes no sense")),
                Some("hangs") => std::future::pending().await,
                _ => Ok(Next::Settled),
            }
        },
    );
    let running = Manager::new(cluster.client().kube().clone()).with(controller).start();
    // What is there before that is listed, not created.
    running.caches().informer::<ConfigMap>().cache().synced().await;
    for name in ["a", "fails", "b", "hangs"] {
        cluster.client().create(&config_map(name)).await?;
        cluster.advance(Duration::from_secs(1)).await;
    }
    let history = serde_json::to_value(running.history())?;
    let history = &history[0];
    assert_eq!((&history["controller"], &history["concurrency"]), (&json!("stubborn"), &json!(1)));
    let recent: Vec<_> = history["recent"].as_array().unwrap().iter().collect();
    let ids: Vec<_> = recent.iter().map(|record| record["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [3, 2, 1]);
    assert_eq!(recent[0]["key"], "default/b");
    assert_eq!(recent[0]["causes"], json!(["ConfigMap default/b created"]));
    assert_eq!(recent[0]["outcome"], "settled");
    assert!(recent[0]["started"].as_str().unwrap().starts_with("2030-01-01T00:00:"), "{history}");
    assert_eq!(history["failing"].as_array().unwrap().len(), 1);
    assert_eq!(history["failing"][0]["outcome"], "failed for good: makes no sense");
    assert_eq!(history["running"][0]["key"], "default/hangs");
    assert_eq!(history["running"][0]["id"], 4);

    cluster.client().delete::<ConfigMap>("fails", &DeleteParams::default()).await?;
    let metrics = running.metrics().render();
    for line in [
        "controller_runtime_reconcile_total{controller=\"stubborn\",result=\"success\"} 2",
        "controller_runtime_reconcile_total{controller=\"stubborn\",result=\"error\"} 1",
        "controller_runtime_reconcile_errors_total{controller=\"stubborn\"} 1",
        "controller_runtime_terminal_reconcile_errors_total{controller=\"stubborn\"} 1",
        "controller_runtime_reconcile_panics_total{controller=\"stubborn\"} 0",
        "controller_runtime_reconcile_timeouts_total{controller=\"stubborn\"} 0",
        "controller_runtime_reconcile_time_seconds_count{controller=\"stubborn\"} 3",
        "controller_runtime_max_concurrent_reconciles{controller=\"stubborn\"} 1",
        "controller_runtime_active_workers{controller=\"stubborn\"} 1",
        "steersman_reconcile_causes_total{controller=\"stubborn\",cause=\"created\"} 4",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    Ok(())
}

#[steersman::test]
async fn no_reconcile_happens_without_a_cause(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    let makes_two = Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            for number in 0..2 {
                let mut secret = Secret::default();
                secret.metadata.name =
                    map.metadata.name.as_ref().map(|it| format!("{it}-{number}"));
                ctx.apply(secret).await?;
            }
            Ok(Next::After(Duration::from_secs(30)))
        },
    );
    cluster.run(makes_two);
    for number in 0..20 {
        cluster.client().create(&config_map(&format!("map-{number}"))).await?;
    }
    cluster.advance(Duration::from_secs(100)).await;
    let (mut timers, mut total) = (0, 0);
    while let Ok(record) = records.try_recv() {
        assert!(!record.causes.is_empty(), "{} was reconciled for no reason", record.key);
        timers += usize::from(record.causes.to_string().contains("timer"));
        total += 1;
    }
    assert!(timers >= 40 && total <= 140, "{timers} of {total} by a timer");
    Ok(())
}

#[steersman::test]
async fn every_reconcile_leaves_a_line_that_says_why_and_how_it_ended(
    cluster: Cluster,
) -> Result<()> {
    let logged = Logged::begin();
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        async |map: Arc<ConfigMap>, _: Context<ConfigMap>| match map.metadata.name.as_deref() {
            Some("bad") => Err(Error::message("no luck")),
            _ => Ok(Next::After(Duration::from_secs(3600))),
        },
    ));
    cluster.client().create(&config_map("good")).await?;
    cluster.client().create(&config_map("bad")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let text = logged.text();
    let good = "reconciled default/good because ConfigMap default/good created → ";
    assert!(text.lines().any(|line| line.contains("DEBUG") && line.contains(good)), "{text}");
    let bad = "reconcile of default/bad because ConfigMap default/bad created failed";
    assert!(text.lines().any(|line| line.contains("WARN") && line.contains(bad)), "{text}");
    Ok(())
}
