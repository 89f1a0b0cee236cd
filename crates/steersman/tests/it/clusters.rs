//! Several clusters in one manager, on one virtual clock.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use steersman::manager::RemoteCluster;
use steersman::{Client, Context, Controller, Manager, Next, ObjectKey, Result};
use steersman_testkit::Cluster;

use crate::reconcile::{config_map, of_the_test};

/// An API server of its own.
async fn another() -> steersman_cluster::Cluster {
    let builder = steersman_cluster::Cluster::builder().nodes(0).controllers(false);
    builder.seed(2).start().await.unwrap()
}

fn secret(name: &str, value: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.into());
    secret.string_data = Some([("value".to_owned(), value.to_owned())].into());
    secret
}

/// Copies the value of the remote Secret of the same name into each ConfigMap.
fn copies(remote: &RemoteCluster) -> Controller {
    let read = remote.clone();
    let same_key = |secret: &Secret| {
        let meta = &secret.metadata;
        Some(ObjectKey::namespaced(meta.namespace.as_deref()?, meta.name.as_deref()?))
    };
    Controller::of::<ConfigMap>().only(of_the_test).watches_in(remote, same_key).reconcile(
        move |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let read = read.clone();
            async move {
                let Some(secret) = read.cache::<Secret>()?.get(ctx.key()) else {
                    return Ok(Next::Settled);
                };
                let value = secret.data.as_ref().and_then(|data| data.get("value")).cloned();
                let value = String::from_utf8(value.unwrap_or_default().0)?;
                let mut map = (*map).clone();
                map.data = Some([("value".to_owned(), value)].into());
                ctx.update(&map).await?;
                Ok(Next::Settled)
            }
        },
    )
}

fn has(value: &str) -> impl Fn(&ConfigMap) -> bool {
    move |map| map.data.as_ref().is_some_and(|data| data["value"] == value)
}

#[steersman::test]
async fn a_controller_follows_objects_of_another_cluster(cluster: Cluster) -> Result<()> {
    let east = another().await;
    let manager = Manager::new(cluster.client().kube().clone());
    let remote = manager.cluster("east", east.client());
    let running = manager.with(copies(&remote)).start();
    running.ready().await?;
    cluster.client().create(&config_map("a")).await?;
    cluster.client().create(&secret("a", "of this cluster")).await?;
    let client = Client::new(east.client(), "test");
    client.create(&secret("a", "one")).await?;
    cluster.eventually("a", has("one")).await?;
    client.apply(&secret("a", "two")).await?;
    cluster.eventually("a", has("two")).await?;
    let text = running.metrics().render();
    assert!(text.contains("informer_objects{name=\"ConfigMap\",group=\"\"}"), "{text}");
    assert!(
        text.contains("informer_objects{name=\"Secret\",group=\"\",cluster=\"east\"} 1"),
        "{text}"
    );
    Ok(())
}

#[steersman::test]
async fn a_controller_can_reconcile_objects_of_another_cluster(cluster: Cluster) -> Result<()> {
    let east = another().await;
    let manager = Manager::new(cluster.client().kube().clone());
    let remote = manager.cluster("east", east.client());
    let marks = Controller::of::<ConfigMap>().named("marks").reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            if map.data.is_none() {
                let mut map = (*map).clone();
                map.data = Some([("value".to_owned(), "seen".to_owned())].into());
                ctx.update(&map).await?;
            }
            Ok(Next::Settled)
        },
    );
    let _running = manager.with_in(&remote, marks).start();
    cluster.client().create(&config_map("here")).await?;
    remote.client().create(&config_map("there")).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let there: Option<ConfigMap> = remote.client().get("there").await?;
    assert!(there.is_some_and(|map| has("seen")(&map)));
    let here: Option<ConfigMap> = cluster.client().get("here").await?;
    assert!(here.is_some_and(|map| map.data.is_none()));
    Ok(())
}

#[steersman::test]
async fn a_cache_that_nobody_declared_is_an_error_with_a_hint(cluster: Cluster) {
    let manager = Manager::new(cluster.client().kube().clone());
    let remote = manager.cluster("east", cluster.client().kube().clone());
    let error = remote.cache::<Secret>().err().unwrap().to_string();
    assert!(error.contains("Secret objects of cluster \"east\""), "{error}");
    assert!(error.contains(".watches_in("), "{error}");
}
