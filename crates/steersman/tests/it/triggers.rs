//! What wakes a controller, and how often.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::DeleteParams;
use steersman::{Context, Controller, Next, ObjectKey, Result, predicate};
use steersman_testkit::Cluster;

use crate::reconcile::{config_map, of_the_test};

fn secret_for(map: &str, name: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.into());
    secret.metadata.labels = Some([("for".to_owned(), map.to_owned())].into());
    secret
}

fn keys(secret: &Secret) -> Option<ObjectKey> {
    let name = secret.metadata.labels.as_ref()?.get("for")?;
    Some(ObjectKey::namespaced(secret.metadata.namespace.as_deref()?, name.as_str()))
}

#[steersman::test]
async fn an_update_that_changes_the_mapping_wakes_both_targets(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(
        Controller::of::<ConfigMap>()
            .only(of_the_test)
            .watches(keys)
            .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled)),
    );
    cluster.client().create(&config_map("a")).await?;
    cluster.client().create(&config_map("b")).await?;
    cluster.client().create(&secret_for("a", "s")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    while records.try_recv().is_ok() {}
    cluster.client().update(&secret_for("b", "s")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let mut woken = [records.recv().await?.key.to_string(), records.recv().await?.key.to_string()];
    woken.sort();
    assert_eq!(woken, ["default/a", "default/b"]);
    assert!(records.try_recv().is_err());
    Ok(())
}

#[steersman::test]
async fn a_child_deleted_by_somebody_else_wakes_its_owner(cluster: Cluster) -> Result<()> {
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            let mut secret = Secret::default();
            secret.metadata.name.clone_from(&map.metadata.name);
            ctx.apply(secret).await?;
            Ok(Next::Settled)
        },
    ));
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", |_: &Secret| true).await?;
    let first: Option<Secret> = cluster.client().get("a").await?;
    cluster.client().delete::<Secret>("a", &DeleteParams::default()).await?;
    let first = first.and_then(|secret| secret.metadata.uid);
    cluster.eventually("a", |secret: &Secret| secret.metadata.uid != first).await
}

#[steersman::test]
async fn changes_that_come_together_cause_one_reconcile_and_at_most_one_more(
    cluster: Cluster,
) -> Result<()> {
    let mut records = cluster.reconciles();
    let running = Arc::new(AtomicU32::new(0));
    let one_at_a_time = Arc::clone(&running);
    cluster.run(
        Controller::of::<ConfigMap>().only(of_the_test).concurrency(8).watches(keys).reconcile(
            move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
                let running = Arc::clone(&one_at_a_time);
                async move {
                    assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    let slow = std::future::pending::<()>();
                    let _ = tokio::time::timeout(Duration::from_secs(10), slow).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(Next::Settled)
                }
            },
        ),
    );
    cluster.advance(Duration::from_secs(1)).await; // it has listed before anything is created
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    for number in 0..20 {
        cluster.client().create(&secret_for("a", &format!("s-{number}"))).await?;
    }
    cluster.advance(Duration::from_secs(60)).await;
    let (first, second) = (records.try_recv().unwrap(), records.try_recv().unwrap());
    assert_eq!(first.causes.to_string(), "ConfigMap default/a created");
    assert!(second.causes.to_string().ends_with("and 12 more"), "{}", second.causes);
    assert!(records.try_recv().is_err(), "a third reconcile");
    Ok(())
}

#[steersman::test]
async fn what_many_others_write_at_once_is_seen_by_few_reconciles(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(
        Controller::of::<ConfigMap>()
            .only(of_the_test)
            .watches(keys)
            .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled)),
    );
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    while records.try_recv().is_ok() {}
    for number in 0..40 {
        cluster.client().create(&secret_for("a", &format!("s-{number}"))).await?;
    }
    cluster.advance(Duration::from_secs(1)).await;
    let mut count = 0;
    while records.try_recv().is_ok() {
        count += 1;
    }
    assert!((1..=4).contains(&count), "{count} reconciles");
    Ok(())
}

#[steersman::test]
async fn a_predicate_keeps_uninteresting_updates_away(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(
        Controller::of::<ConfigMap>()
            .only(of_the_test)
            .when(predicate::label_changed())
            .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled)),
    );
    cluster.advance(Duration::from_secs(1)).await; // it has started
    let mut map = cluster.client().create(&config_map("a")).await?;
    map.data = Some([("k".to_owned(), "v".to_owned())].into());
    let mut map = cluster.client().update(&map).await?;
    map.metadata.labels = Some([("k".to_owned(), "v".to_owned())].into());
    cluster.advance(Duration::from_secs(1)).await;
    cluster.client().update(&map).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(records.recv().await?.causes.to_string(), "ConfigMap default/a created");
    assert_eq!(records.recv().await?.causes.to_string(), "ConfigMap default/a changed its labels");
    assert!(records.try_recv().is_err());
    Ok(())
}

#[steersman::test]
async fn a_timer_brings_the_object_back(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::After(Duration::from_secs(3600))),
    ));
    cluster.advance(Duration::from_secs(1)).await; // it has started
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(3 * 3600 + 60)).await;
    let mut causes = Vec::new();
    while let Ok(record) = records.try_recv() {
        causes.push(record.causes.to_string());
    }
    assert_eq!(causes, ["ConfigMap default/a created", "timer", "timer", "timer"]);
    Ok(())
}
