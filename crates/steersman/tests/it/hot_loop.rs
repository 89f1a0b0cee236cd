//! Controllers that wake themselves: found, told and slowed, and nobody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::controller::ControllerHistory;
use steersman::manager::Running;
use steersman::{Context, Controller, Manager, Next, Result};
use steersman_testkit::{Cluster, Fault, Faults};

use crate::reconcile::{config_map, of_the_test};

fn start(cluster: &Cluster, controller: Controller) -> Running {
    Manager::new(cluster.client().kube().clone()).with(controller).start()
}

fn history(running: &Running) -> ControllerHistory {
    running.history().remove(0)
}

/// Writes how often it was called into the status, each time.
fn chases_its_status(calls: &Arc<AtomicU32>) -> Controller {
    let calls = Arc::clone(calls);
    Controller::of::<Namespace>()
        .named("restless")
        .only(|ns| ns.metadata.name.as_deref() == Some("default"))
        .reconcile(move |_: Arc<Namespace>, ctx: Context<Namespace>| {
            let count = calls.fetch_add(1, Ordering::SeqCst);
            ctx.status(json!({"phase": "Active", "conditions": [{"type": "Checked",
                "status": "True", "message": count.to_string()}]}));
            async { Ok(Next::Settled) }
        })
}

#[steersman::test]
async fn a_status_that_changes_with_every_reconcile_is_found_and_slowed(
    cluster: Cluster,
) -> Result<()> {
    let calls = Arc::new(AtomicU32::new(0));
    let running = start(&cluster, chases_its_status(&calls));
    cluster.advance(Duration::from_secs(3600)).await;
    let count = calls.load(Ordering::SeqCst);
    assert!((100..250).contains(&count), "{count} reconciles in an hour");
    let found = history(&running).hot_loops.remove(0);
    assert_eq!(found.key.to_string(), "default");
    assert_eq!(found.changing, ["Namespace default: status.conditions[0].message"]);
    assert_eq!(found.causes.to_string(), "Namespace default changed its status");
    let metrics = running.metrics().render();
    assert!(metrics.contains("steersman_hot_loops_total{controller=\"restless\"} 1"), "{metrics}");
    Ok(())
}

#[steersman::test]
async fn a_key_in_a_loop_still_answers_others_at_once(cluster: Cluster) -> Result<()> {
    let calls = Arc::new(AtomicU32::new(0));
    let running = start(&cluster, chases_its_status(&calls));
    let mut records = running.reconciles();
    cluster.advance(Duration::from_secs(600)).await;
    while records.try_recv().is_ok() {}
    for number in 0..20 {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"n": number.to_string()}}}));
        cluster.client().patch::<Namespace, _>("default", &patch).await?;
        cluster.advance(Duration::from_millis(20)).await;
        let mut causes = String::new();
        while let Ok(record) = records.try_recv() {
            causes += &record.causes.to_string();
        }
        assert!(causes.contains("labels"), "change {number}: {causes:?}");
    }
    Ok(())
}

/// Recreates its child whenever that is gone.
fn keeps_a_child() -> Controller {
    Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            let mut secret = Secret::default();
            secret.metadata.name.clone_from(&map.metadata.name);
            ctx.apply(secret).await?;
            Ok(Next::Settled)
        },
    )
}

#[steersman::test]
async fn recreating_a_child_of_an_owner_that_is_gone_does_not_stop_the_clock(
    cluster: Cluster,
) -> Result<()> {
    let faults = Faults::seeded(1).with(Fault::ConnectionRefused, 1.0).with(Fault::WatchEnded, 1.0);
    let faults = faults.only(|uri| uri.path().ends_with("/configmaps"));
    faults.heal();
    let running = Manager::new(cluster.client_with(&faults)).with(keeps_a_child()).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", |_: &Secret| true).await?;
    cluster.advance(Duration::from_secs(60)).await;

    faults.resume(); // the controller does not learn that its object goes
    cluster.client().delete::<ConfigMap>("a", &DeleteParams::background()).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let found = history(&running).hot_loops.remove(0);
    let causes = found.causes.to_string();
    for step in ["Secret default/a created", "Secret default/a deleted"] {
        assert!(causes.contains(step), "{found:?}");
    }
    assert_eq!(found.changing.len(), 1);
    assert!(found.changing[0].contains("it is created anew"), "{found:?}");
    faults.heal();
    cluster.advance(Duration::from_secs(120)).await;
    cluster.gone::<Secret>("a").await
}

#[steersman::test]
async fn bursts_of_others_and_short_timers_are_not_slowed(cluster: Cluster) -> Result<()> {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    // Writes its child only when that has to change, and looks again every 10 ms.
    let controller = Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        move |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let mut secret = Secret::default();
                secret.metadata.name.clone_from(&map.metadata.name);
                secret.string_data.clone_from(&map.data);
                ctx.apply(secret).await?;
                Ok(Next::After(Duration::from_millis(10)))
            }
        },
    );
    let running = start(&cluster, controller);
    let mut map = cluster.client().create(&config_map("a")).await?;
    for number in 0..300 {
        map.data = Some([("n".to_owned(), number.to_string())].into());
        map = cluster.client().update(&map).await?;
        cluster.advance(Duration::from_millis(5)).await;
    }
    cluster.advance(Duration::from_secs(10)).await;
    assert!(history(&running).hot_loops.is_empty());
    let count = calls.load(Ordering::SeqCst);
    assert!(count > 1200, "{count} reconciles");
    Ok(())
}

#[steersman::test]
async fn children_made_one_per_reconcile_are_no_loop(cluster: Cluster) -> Result<()> {
    let controller = Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            if ctx.children::<Secret>()?.len() < 50 {
                let mut secret = Secret::default();
                secret.metadata.generate_name = Some("child-".into());
                ctx.create(secret).await?;
            }
            Ok(Next::Settled)
        },
    );
    let running = start(&cluster, controller);
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_millis(50)).await;
    let options = steersman::ListOptions::namespace("default");
    assert_eq!(cluster.client().list::<Secret>(&options).await?.len(), 50);
    assert!(history(&running).hot_loops.is_empty());
    Ok(())
}
