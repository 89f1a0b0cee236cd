//! What happens around a reconcile: failures, status, own writes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::Patch;
use serde_json::json;
use steersman::controller::Outcome;
use steersman::{Context, Controller, Error, ListOptions, Manager, Next, Result};
use steersman_testkit::Cluster;
use tokio::time::Instant;

/// A ConfigMap that asks for attention.
pub(crate) fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map
}

/// Only the ConfigMaps of the test, not those the cluster keeps for itself.
pub(crate) fn of_the_test(map: &ConfigMap) -> bool {
    map.metadata.namespace.as_deref() == Some("default")
        && map.metadata.name.as_deref() != Some("kube-root-ca.crt")
}

#[steersman::test]
async fn a_failing_reconcile_is_retried_with_growing_delays(cluster: Cluster) -> Result<()> {
    let tries = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&tries);
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        move |_, _: Context<ConfigMap>| {
            noted.lock().unwrap().push(Instant::now());
            async { Err(Error::message("not yet")) }
        },
    ));
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let tries = tries.lock().unwrap().clone();
    let gaps: Vec<Duration> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(tries.len() > 8 && tries.len() < 20, "{gaps:?}");
    assert!(gaps.windows(2).all(|pair| pair[1] > pair[0].mul_f64(1.5)), "{gaps:?}");
    Ok(())
}

#[steersman::test]
async fn a_controller_may_write_under_another_name_than_its_own(cluster: Cluster) -> Result<()> {
    let stamp = async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
        let stamped = json!({"data": {"by": ctx.live().field_manager()}});
        ctx.live().patch::<ConfigMap, _>(ctx.key().clone(), &Patch::Merge(stamped)).await?;
        Ok(Next::Settled)
    };
    let controller =
        Controller::of::<ConfigMap>().only(of_the_test).named("stamp").reconcile(stamp);
    assert_eq!(controller.name(), "stamp");
    cluster.run(controller.field_manager("the-program"));
    let mut map = config_map("a");
    map.data = Some([("by".to_owned(), "nobody".to_owned())].into()); // of what is empty nobody is noted
    cluster.client().create(&map).await?;
    let is_stamped =
        |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["by"] == "the-program");
    cluster.eventually("a", is_stamped).await?;
    let map: ConfigMap = cluster.client().get("a").await?.expect("it is there");
    let managers = map.metadata.managed_fields.unwrap_or_default();
    assert!(managers.iter().any(|it| it.manager.as_deref() == Some("the-program")), "{managers:?}");
    Ok(())
}

#[steersman::test]
async fn what_waits_in_a_queue_is_shown_with_its_reason(cluster: Cluster) -> Result<()> {
    let controller = Controller::of::<ConfigMap>().only(of_the_test).named("stubborn").reconcile(
        async |_: Arc<ConfigMap>, _: Context<ConfigMap>| -> Result<Next> {
            Err(Error::message("not yet"))
        },
    );
    let running = Manager::new(cluster.client().kube().clone()).with(controller).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let queues = serde_json::to_value(running.queues())?;
    assert_eq!(queues[0]["name"], "stubborn");
    let key = &queues[0]["keys"][0];
    assert_eq!((&key["key"], &key["state"]), (&json!("default/a"), &json!("backingOff")));
    assert!(key["reason"].as_str().is_some_and(|why| why.starts_with("retry ")), "{queues}");
    assert!(running.metrics().render().contains("workqueue_retries_total{"));
    Ok(())
}

#[steersman::test]
async fn a_panic_is_survived_and_retried(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        move |_, _: Context<ConfigMap>| {
            let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                assert!(!first, "the first try panics");
                Ok(Next::Settled)
            }
        },
    ));
    cluster.client().create(&config_map("a")).await?;
    let first = records.recv().await?;
    assert_eq!(first.outcome, Outcome::Panicked("the first try panics".into()));
    let second = records.recv().await?;
    assert_eq!(
        (second.outcome.clone(), second.causes.to_string()),
        (Outcome::Settled, "retry 1".into())
    );
    Ok(())
}

#[steersman::test]
async fn a_terminal_error_waits_for_a_change(cluster: Cluster) -> Result<()> {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        move |_, _: Context<ConfigMap>| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Err(Error::terminal("makes no sense")) }
        },
    ));
    let mut map = cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(tries.load(Ordering::Relaxed), 1);
    map.data = Some([("changed".to_owned(), "yes".to_owned())].into());
    cluster.client().update(&map).await?;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(tries.load(Ordering::Relaxed), 2);
    Ok(())
}

#[steersman::test]
async fn status_is_written_once_even_if_the_reconcile_fails(cluster: Cluster) -> Result<()> {
    cluster.run(
        Controller::of::<Namespace>()
            .named("phases")
            .only(|ns| ns.metadata.name.as_deref() == Some("default"))
            .reconcile(async |_: Arc<Namespace>, ctx: Context<Namespace>| -> Result<Next> {
                ctx.status(json!({"phase": "Active", "conditions": [
                    {"type": "Seen", "status": "True"}]}));
                Err(Error::terminal("after reporting"))
            }),
    );
    cluster
        .eventually("default", |ns: &Namespace| {
            ns.status.as_ref().is_some_and(|status| status.conditions.is_some())
        })
        .await
}

#[steersman::test]
async fn a_reconcile_that_takes_too_long_is_aborted_and_retried(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(
        Controller::of::<ConfigMap>()
            .only(of_the_test)
            .timeout(Duration::from_secs(5))
            .reconcile(|_, _: Context<ConfigMap>| std::future::pending()),
    );
    cluster.client().create(&config_map("a")).await?;
    assert_eq!(records.recv().await?.outcome, Outcome::TimedOut);
    assert_eq!(records.recv().await?.outcome, Outcome::TimedOut);
    Ok(())
}

#[steersman::test]
async fn reads_never_miss_the_controllers_own_writes(cluster: Cluster) -> Result<()> {
    // Creates a Secret under a new name whenever it sees none: a stale read would create two.
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            if ctx.children::<Secret>()?.is_empty() {
                let mut secret = Secret::default();
                secret.metadata.generate_name = Some("child-".into());
                ctx.create(secret).await?;
                return Ok(Next::After(Duration::from_nanos(1)));
            }
            Ok(Next::Settled)
        },
    ));
    for name in ["a", "b", "c", "d"] {
        cluster.client().create(&config_map(name)).await?;
    }
    cluster.advance(Duration::from_secs(60)).await;
    let secrets: Vec<Secret> = cluster.client().list(&ListOptions::namespace("default")).await?;
    assert_eq!(secrets.len(), 4);
    Ok(())
}

#[steersman::test]
async fn a_cached_read_that_nobody_declared_says_what_to_add(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            ctx.get::<Deployment>("web")?;
            Ok(Next::Settled)
        },
    ));
    cluster.client().create(&config_map("a")).await?;
    let outcome = records.recv().await?.outcome.to_string();
    assert!(outcome.contains(".reads::<Deployment>()"), "{outcome}");
    Ok(())
}
