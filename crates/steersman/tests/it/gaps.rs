//! Watches that break: what happened meanwhile must not be lost.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::DeleteParams;
use steersman::{Context, Controller, Manager, Next, Result};
use steersman_store::{RangeRequest, Store};
use steersman_testkit::{Cluster, Fault, Faults};

use crate::reconcile::{config_map, of_the_test};

/// A network that can go down: requests fail, and watches end when something would come. It is
/// up until [`Faults::resume`].
fn network() -> Faults {
    let network =
        Faults::seeded(1).with(Fault::ConnectionRefused, 1.0).with(Fault::WatchEnded, 1.0);
    network.heal();
    network
}

/// Makes the server forget everything that was before now: no watch can begin there.
pub(crate) async fn forget_history(cluster: &Cluster) {
    let store = cluster.inner().store();
    let now = store.range(RangeRequest { limit: 1, ..RangeRequest::default() }).await.unwrap();
    store.compact(now.revision).await.unwrap();
}

#[steersman::test]
async fn a_child_deleted_while_nobody_watched_is_noticed(cluster: Cluster) -> Result<()> {
    let network = network();
    let controller = Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            let mut secret = Secret::default();
            secret.metadata.name.clone_from(&map.metadata.name);
            ctx.apply(secret).await?;
            Ok(Next::Settled)
        },
    );
    let _running = Manager::new(cluster.client_with(&network)).with(controller).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", |_: &Secret| true).await?;
    cluster.advance(Duration::from_secs(1)).await;

    network.resume();
    cluster.client().delete::<Secret>("a", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(60)).await;
    forget_history(&cluster).await; // the watches cannot be resumed: 410
    assert!(cluster.client().get::<Secret>("a").await?.is_none());

    network.heal();
    cluster.eventually("a", |_: &Secret| true).await
}

#[steersman::test]
async fn work_goes_on_when_the_network_comes_back(cluster: Cluster) -> Result<()> {
    let network = network();
    network.resume();
    let manager = Manager::new(cluster.client_with(&network));
    let mut records = manager.reconciles();
    let controller = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled));
    let _running = manager.with(controller).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(300)).await;
    assert!(records.try_recv().is_err());
    network.heal();
    assert_eq!(records.recv().await?.key.to_string(), "default/a");
    Ok(())
}

/// Creates a Secret under a new name whenever it sees none; leaves "quiet" alone.
fn one_child_each() -> Controller {
    Controller::of::<ConfigMap>().only(of_the_test).owns::<Secret>().reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            if map.metadata.name.as_deref() == Some("quiet") {
                return Ok(Next::Settled);
            }
            if ctx.children::<Secret>()?.is_empty() {
                let mut secret = Secret::default();
                secret.metadata.generate_name = Some("child-".into());
                ctx.create(secret).await?;
            }
            Ok(Next::After(Duration::from_secs(1)))
        },
    )
}

#[steersman::test]
async fn a_cache_that_is_behind_postpones_its_key_and_no_other(cluster: Cluster) -> Result<()> {
    let network = network().only(|uri| {
        let query = uri.query().unwrap_or_default();
        uri.path().ends_with("/secrets") && !query.contains("fieldManager")
    });
    let manager = Manager::new(cluster.client_with(&network));
    let mut records = manager.reconciles();
    let _running = manager.with(one_child_each()).start();
    cluster.advance(Duration::from_secs(1)).await;
    network.resume();

    cluster.client().create(&config_map("writes")).await?;
    let mut quiet = cluster.client().create(&config_map("quiet")).await?;
    for number in 0..50 {
        quiet.data = Some([("n".to_owned(), number.to_string())].into());
        quiet = cluster.client().update(&quiet).await?;
        cluster.advance(Duration::from_millis(200)).await;
    }
    let mut of_quiet = 0;
    while let Ok(record) = records.try_recv() {
        of_quiet += u32::from(record.key.name.as_ref() == "quiet");
    }
    assert!(of_quiet > 40, "a key that wrote nothing was reconciled {of_quiet} times");

    cluster.advance(Duration::from_secs(60)).await;
    network.heal();
    cluster.advance(Duration::from_secs(120)).await;
    let secrets: Vec<Secret> =
        cluster.client().list(&steersman::ListOptions::namespace("default")).await?;
    assert_eq!(secrets.len(), 1, "a stale read created another child");
    Ok(())
}
