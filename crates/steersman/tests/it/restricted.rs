//! Caches that hold only some objects of a kind.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::DeleteParams;
use serde_json::json;
use steersman::caches::Caches;
use steersman::informer::{CacheConfig, Event, Informer};
use steersman::{Context, Controller, Metrics, Next, ObjectKey, Result};
use steersman_testkit::{Cluster, Fault, Faults};
use tokio::sync::mpsc;

async fn namespaces(cluster: &Cluster, names: &[&str]) -> Result<()> {
    for name in names {
        let namespace = json!({"metadata": {"name": name}});
        cluster.client().create(&serde_json::from_value::<Namespace>(namespace)?).await?;
    }
    Ok(())
}

fn map(namespace: &str, name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.namespace = Some(namespace.into());
    map.metadata.name = Some(name.into());
    map
}

fn labelled(namespace: &str, name: &str, app: &str) -> ConfigMap {
    let mut map = map(namespace, name);
    map.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
    map
}

fn informer(cluster: &Cluster, config: CacheConfig<ConfigMap>) -> Informer<ConfigMap> {
    let caches = Caches::new(cluster.client().kube().clone(), Metrics::default());
    caches.configure(config);
    caches.informer::<ConfigMap>()
}

/// What a cache holds, without what the cluster keeps for itself.
fn held(informer: &Informer<ConfigMap>) -> Vec<String> {
    let all = informer.cache().snapshot();
    let keys = all.iter().map(|item| item.key().to_string());
    keys.filter(|key| !key.ends_with("kube-root-ca.crt") && !key.starts_with("kube-")).collect()
}

#[steersman::test]
async fn several_namespaces_feed_one_cache_and_no_other_does(cluster: Cluster) -> Result<()> {
    namespaces(&cluster, &["a", "b", "c"]).await?;
    for namespace in ["a", "b", "c"] {
        cluster.client().create(&map(namespace, "first")).await?;
    }
    let informer = informer(&cluster, CacheConfig::default().namespaces(["a", "b"]));
    assert!(informer.cache().synced().await);
    assert_eq!(held(&informer), ["a/first", "b/first"]);
    for namespace in ["a", "b", "c"] {
        cluster.client().create(&map(namespace, "second")).await?;
    }
    cluster.client().delete::<ConfigMap>("a/first", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(held(&informer), ["a/second", "b/first", "b/second"]);
    assert!(informer.cache().covers(Some("a")).is_ok());
    let refused = informer.cache().covers(Some("c")).unwrap_err().to_string();
    assert!(refused.contains("holds the namespaces a, b only, not c"), "{refused}");
    let status = informer.status();
    assert_eq!((status.synced, status.phase.as_str()), (true, "watching"));
    Ok(())
}

#[steersman::test]
async fn a_new_list_of_one_namespace_leaves_the_others_alone(cluster: Cluster) -> Result<()> {
    namespaces(&cluster, &["a", "b"]).await?;
    for namespace in ["a", "b"] {
        cluster.client().create(&map(namespace, "first")).await?;
    }
    let faults = Faults::seeded(1)
        .with(Fault::ExpiredEvent, 1.0)
        .only(|uri| uri.path().contains("/namespaces/a/"));
    let caches = Caches::new(cluster.client_with(&faults), Metrics::default());
    caches.configure(CacheConfig::<ConfigMap>::default().namespaces(["a", "b"]));
    let informer = caches.informer::<ConfigMap>();
    let (send, mut deleted) = mpsc::channel(64);
    let hear = move |event: &Event<ConfigMap>| {
        if matches!(event, Event::Deleted { .. }) {
            let _ = send.try_send(event.object().key().to_string());
        }
    };
    informer.add_handler(hear).await.synced().await;
    cluster.client().create(&map("a", "second")).await?; // its event is 410 instead
    cluster.advance(Duration::from_secs(1)).await;
    faults.heal();
    cluster.advance(Duration::from_secs(120)).await;
    assert!(informer.status().counts.relists > 0, "{faults}");
    assert_eq!(held(&informer), ["a/first", "a/second", "b/first"]);
    assert!(deleted.try_recv().is_err());
    Ok(())
}

#[steersman::test]
async fn labels_and_fields_choose_what_is_held(cluster: Cluster) -> Result<()> {
    let config = CacheConfig::default().labels("app in (web,api)").fields("metadata.name!=b");
    let informer = informer(&cluster, config);
    assert!(informer.cache().synced().await);
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "batch")] {
        cluster.client().create(&labelled("default", name, app)).await?;
    }
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(held(&informer), ["default/a"]);
    // Who leaves the selection leaves the cache.
    cluster.client().update(&labelled("default", "a", "batch")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert!(held(&informer).is_empty());
    Ok(())
}

#[steersman::test]
async fn a_restriction_of_all_kinds_spares_those_without_namespaces(
    cluster: Cluster,
) -> Result<()> {
    namespaces(&cluster, &["a", "b"]).await?;
    let caches = Caches::new(cluster.client().kube().clone(), Metrics::default());
    caches.restrict_to(["a"]);
    caches.configure(CacheConfig::<Secret>::default().namespaces(["b"]));
    let (maps, secrets) = (caches.informer::<ConfigMap>(), caches.informer::<Secret>());
    let all = caches.informer::<Namespace>();
    assert!(maps.cache().synced().await && secrets.cache().synced().await);
    assert!(all.cache().synced().await);
    assert!(maps.cache().covers(Some("a")).is_ok() && maps.cache().covers(Some("b")).is_err());
    assert!(
        secrets.cache().covers(Some("a")).is_err() && secrets.cache().covers(Some("b")).is_ok()
    );
    assert!(all.cache().get(&ObjectKey::named("b")).is_some());
    Ok(())
}

#[steersman::test]
async fn the_empty_name_stands_for_all_namespaces(cluster: Cluster) -> Result<()> {
    namespaces(&cluster, &["a", "b"]).await?;
    for namespace in ["a", "b"] {
        cluster.client().create(&map(namespace, "first")).await?;
    }
    let caches = Caches::new(cluster.client().kube().clone(), Metrics::default());
    caches.restrict_to("".split(',')); // what a variable says that is not set
    caches.configure(CacheConfig::<Secret>::default().namespaces(["b"]));
    let (maps, secrets) = (caches.informer::<ConfigMap>(), caches.informer::<Secret>());
    assert!(maps.cache().synced().await && secrets.cache().synced().await);
    assert_eq!(held(&maps), ["a/first", "b/first"]);
    assert!(maps.cache().covers(None).is_ok() && secrets.cache().covers(None).is_err());
    Ok(())
}

/// Writes a Secret for each ConfigMap, and says what it sees of it.
fn controller(seen: mpsc::Sender<String>) -> Controller {
    Controller::of::<ConfigMap>().owns::<Secret>().reconcile(
        move |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let seen = seen.clone();
            async move {
                if ctx.children::<Secret>()?.is_empty() {
                    let mut secret = Secret::default();
                    secret.metadata.generate_name = Some("child-".into());
                    ctx.create(secret).await?;
                    return Ok(Next::After(Duration::from_nanos(1)));
                }
                let _ = seen.try_send(map.metadata.namespace.clone().unwrap_or_default());
                Ok(Next::Settled)
            }
        },
    )
}

#[steersman::test]
async fn own_writes_are_seen_soon_where_namespaces_are_watched_one_by_one(
    cluster: Cluster,
) -> Result<()> {
    namespaces(&cluster, &["a", "b", "quiet"]).await?;
    let (send, mut seen) = mpsc::channel(64);
    let manager = steersman::Manager::new(cluster.client().kube().clone())
        .cache::<ConfigMap>(|cache| cache.namespaces(["a", "b"]).labels("app=web"))
        .cache::<Secret>(|cache| cache.namespaces(["a", "b", "quiet"]))
        .with(controller(send));
    let running = manager.start();
    cluster.client().create(&labelled("a", "x", "web")).await?;
    cluster.client().create(&labelled("b", "y", "web")).await?;
    cluster.client().create(&labelled("a", "z", "batch")).await?;
    // The watch of the quiet namespace hears of no version for a minute; nobody waits for it.
    cluster.advance(Duration::from_secs(5)).await;
    let mut soon: Vec<String> = std::iter::from_fn(|| seen.try_recv().ok()).collect();
    soon.sort();
    soon.dedup();
    assert_eq!(soon, ["a", "b"]);
    let options = steersman::ListOptions::namespace("a");
    let secrets: Vec<Secret> = cluster.client().list(&options).await?;
    assert_eq!(secrets.len(), 1, "one for the labelled ConfigMap, and never a second");
    running.stop().await;
    Ok(())
}

#[steersman::test]
async fn a_cached_read_outside_of_the_restriction_is_an_error_with_a_hint(
    cluster: Cluster,
) -> Result<()> {
    namespaces(&cluster, &["a"]).await?;
    let manager = steersman::Manager::new(cluster.client().kube().clone())
        .cache::<Pod>(|cache| cache.namespaces(["a"]))
        .with(
            Controller::of::<ConfigMap>()
                .only(crate::reconcile::of_the_test)
                .reads::<Pod>()
                .reconcile(async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
                    ctx.get::<Pod>("web").map(|_| Next::Settled)
                }),
        );
    let mut records = manager.reconciles();
    let running = manager.start();
    cluster.client().create(&map("default", "m")).await?;
    let outcome = records.recv().await?.outcome.to_string();
    assert!(outcome.contains("holds the namespaces a only, not default"), "{outcome}");
    assert!(outcome.contains("ctx.live()"), "{outcome}");
    running.stop().await;
    Ok(())
}

#[steersman::test]
async fn who_waits_for_a_cache_hears_when_its_informer_has_gone(cluster: Cluster) -> Result<()> {
    let informer = informer(&cluster, CacheConfig::default());
    let cache = informer.cache().clone();
    drop(informer);
    assert!(!cache.synced().await, "it was dropped before its first list");
    assert!(!cache.reached(u64::MAX).await);
    Ok(())
}
