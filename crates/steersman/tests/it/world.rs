//! A world that is settled: what is written, and what is not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::conditions::{ConditionType, Conditions};
use steersman::informer::CacheConfig;
use steersman::ownership::set_controller_reference;
use steersman::{Context, Controller, ListOptions, Next, ObjectKey, Result};
use steersman_testkit::Cluster;

use crate::conditions::{Gauge, gauge};
use crate::reconcile::config_map;

const SYNCED: ConditionType = ConditionType::new("Synced");

/// A Deployment with amounts that the server writes in another way, defaults inside of values
/// that it takes as one, and lists of all sorts.
fn deployment(replicas: i32) -> Deployment {
    let deployment = json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "containers": [{"name": "c", "image": "i", "args": ["a", "b"],
                "env": [{"name": "NODE",
                    "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}],
            "volumes": [{"name": "v", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token"}}]}}]}}}});
    serde_json::from_value(deployment).unwrap()
}

fn service() -> Service {
    let service = json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    serde_json::from_value(service).unwrap()
}

/// What each settling did.
type Log = Arc<Mutex<Vec<String>>>;

/// As many replicas as the gauge is large, a Service, and a ConfigMap `big` from size 3 on.
fn worlds(log: &Log) -> Controller {
    let log = Arc::clone(log);
    Controller::of::<Gauge>().owns::<Deployment>().owns::<Service>().owns::<ConfigMap>().reconcile(
        move |gauge: Arc<Gauge>, ctx: Context<Gauge>| {
            let log = Arc::clone(&log);
            async move {
                let big = (gauge.spec.size >= 3).then(|| config_map("big"));
                let world = ctx.world().want(deployment(gauge.spec.size)).want(service());
                let world = world.want_all(big).prune::<ConfigMap>().reports(SYNCED);
                let seen = world.settle().await?;
                log.lock().unwrap().push(seen.to_string());
                let replicas =
                    seen.get::<Deployment>("web").and_then(|it| it.spec.as_ref()?.replicas);
                ctx.status(json!({"size": replicas}));
                Ok(Next::Settled)
            }
        },
    )
}

async fn settled(cluster: &Cluster) -> Result<Log> {
    cluster.install::<Gauge>().await?;
    let log = Log::default();
    cluster.run(worlds(&log));
    cluster.client().create(&gauge("a", 2)).await?;
    cluster.advance(Duration::from_secs(60)).await;
    Ok(log)
}

async fn poke(cluster: &Cluster, patch: Value) -> Result<()> {
    cluster.client().patch::<Gauge, _>("a", &Patch::Merge(patch)).await?;
    cluster.advance(Duration::from_secs(60)).await;
    Ok(())
}

fn last(log: &Log) -> String {
    log.lock().unwrap().last().cloned().unwrap_or_default()
}

async fn version(cluster: &Cluster) -> Result<Option<String>> {
    let deployment: Deployment = cluster.client().get("web").await?.unwrap();
    Ok(deployment.metadata.resource_version)
}

#[steersman::test]
async fn what_is_as_wanted_is_not_written(cluster: Cluster) -> Result<()> {
    let log = settled(&cluster).await?;
    let first = log.lock().unwrap()[0].clone();
    assert_eq!(first, "created Deployment default/web; created Service default/web");
    let applied = log.lock().unwrap().iter().filter(|it| it.contains("applied")).count();
    assert_eq!(applied, 0, "{log:?}");
    let before = version(&cluster).await?;
    let settlings = log.lock().unwrap().len();
    poke(&cluster, json!({"metadata": {"labels": {"poked": "yes"}}})).await?;
    assert!(log.lock().unwrap().len() > settlings);
    assert_eq!(last(&log), "2 objects are as wanted");
    assert_eq!(version(&cluster).await?, before);
    let gauge: Gauge = cluster.client().get("a").await?.unwrap();
    let status = gauge.status.unwrap();
    assert_eq!((status.size, status.conditions.is_condition_true("Synced")), (2, true));
    Ok(())
}

#[steersman::test]
async fn after_a_restart_nothing_is_changed_either(cluster: Cluster) -> Result<()> {
    settled(&cluster).await?;
    let before = version(&cluster).await?;
    let log = Log::default();
    // The memory of what an apply leaves is gone; at most it is applied once, to no effect.
    let again = steersman::Manager::new(cluster.client().kube().clone()).with(worlds(&log)).start();
    cluster.advance(Duration::from_secs(60)).await;
    assert!(!log.lock().unwrap().is_empty());
    assert_eq!(version(&cluster).await?, before, "{log:?}");
    again.stop().await;
    Ok(())
}

#[steersman::test]
async fn a_cache_without_managed_fields_is_enough(cluster: Cluster) -> Result<()> {
    cluster.install::<Gauge>().await?;
    let log = Log::default();
    let running = steersman::Manager::new(cluster.client().kube().clone())
        .cache::<Deployment>(CacheConfig::strip_managed_fields)
        .cache::<Service>(CacheConfig::strip_managed_fields)
        .with(worlds(&log))
        .start();
    cluster.client().create(&gauge("a", 2)).await?;
    cluster.advance(Duration::from_secs(60)).await;
    for poked in ["once", "twice"] {
        poke(&cluster, json!({"metadata": {"labels": {"poked": poked}}})).await?;
    }
    assert_eq!(last(&log), "2 objects are as wanted", "{log:?}");
    let drift = Patch::Merge(json!({"spec": {"replicas": 7}}));
    cluster.client().with_field_manager("other").patch::<Deployment, _>("web", &drift).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let web: Deployment = cluster.client().get("web").await?.unwrap();
    assert_eq!(web.spec.unwrap().replicas, Some(2), "{log:?}");
    poke(&cluster, json!({"metadata": {"labels": {"poked": "thrice"}}})).await?;
    assert_eq!(last(&log), "2 objects are as wanted", "{log:?}");
    running.stop().await;
    Ok(())
}

#[steersman::test]
async fn what_differs_is_applied_and_named(cluster: Cluster) -> Result<()> {
    let log = settled(&cluster).await?;
    let drift = Patch::Merge(json!({"spec": {"replicas": 7, "paused": true}}));
    let other = cluster.client().with_field_manager("other");
    other.patch::<Deployment, _>("web", &drift).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let web: Deployment = cluster.client().get("web").await?.unwrap();
    let spec = web.spec.unwrap();
    assert_eq!((spec.replicas, spec.paused), (Some(2), Some(true)), "only ours is set back");
    let said = log.lock().unwrap().iter().any(|it| it.contains(".spec.replicas differs"));
    assert!(said, "{log:?}");
    poke(&cluster, json!({"spec": {"size": 1}})).await?;
    let web: Deployment = cluster.client().get("web").await?.unwrap();
    assert_eq!(web.spec.unwrap().replicas, Some(1));
    Ok(())
}

#[steersman::test]
async fn what_is_wanted_no_longer_is_deleted_and_nothing_else(cluster: Cluster) -> Result<()> {
    let log = settled(&cluster).await?;
    cluster.client().create(&config_map("unrelated")).await?;
    poke(&cluster, json!({"spec": {"size": 3}})).await?;
    assert!(cluster.client().get::<ConfigMap>("big").await?.is_some());
    poke(&cluster, json!({"spec": {"size": 2}})).await?;
    assert!(cluster.client().get::<ConfigMap>("big").await?.is_none());
    assert!(cluster.client().get::<ConfigMap>("unrelated").await?.is_some());
    let said = log.lock().unwrap().iter().any(|it| it.contains("deleted ConfigMap default/big"));
    assert!(said, "{log:?}");
    Ok(())
}

#[steersman::test]
async fn a_field_that_is_wanted_no_longer_is_removed(cluster: Cluster) -> Result<()> {
    cluster.install::<Gauge>().await?;
    let log = Log::default();
    let noted = Arc::clone(&log);
    cluster.run(Controller::of::<Gauge>().owns::<ConfigMap>().reconcile(
        move |gauge: Arc<Gauge>, ctx: Context<Gauge>| {
            let noted = Arc::clone(&noted);
            async move {
                let keys = (0..gauge.spec.size).map(|n| (format!("key-{n}"), "v".to_owned()));
                let mut map = config_map("child");
                map.data = Some(keys.collect());
                let seen = ctx.world().want(map).settle().await?;
                noted.lock().unwrap().push(seen.to_string());
                Ok(Next::Settled)
            }
        },
    ));
    cluster.client().create(&gauge("a", 3)).await?;
    cluster.advance(Duration::from_secs(60)).await;
    poke(&cluster, json!({"spec": {"size": 1}})).await?;
    let map: ConfigMap = cluster.client().get("child").await?.unwrap();
    assert_eq!(map.data.unwrap().into_keys().collect::<Vec<_>>(), ["key-0"]);
    let said = log.lock().unwrap().iter().any(|it| it.contains(".data.key-2 is no longer wanted"));
    assert!(said, "{log:?}");
    Ok(())
}

#[steersman::test]
async fn a_child_of_another_is_left_alone_and_the_rest_is_made(cluster: Cluster) -> Result<()> {
    cluster.install::<Gauge>().await?;
    let owner = cluster.client().create(&config_map("owner")).await?;
    let mut theirs = deployment(5);
    theirs.metadata.namespace = Some("default".into());
    set_controller_reference(&mut theirs.metadata, &owner)?;
    cluster.client().create(&theirs).await?;
    let mut records = cluster.reconciles();
    cluster.run(worlds(&Log::default()));
    cluster.client().create(&gauge("a", 2)).await?;
    let outcome = records.recv().await?.outcome.to_string();
    assert!(outcome.contains("is controlled by ConfigMap owner"), "{outcome}");
    assert!(cluster.client().get::<Service>("web").await?.is_some());
    let web: Deployment = cluster.client().get("web").await?.unwrap();
    assert_eq!(web.spec.unwrap().replicas, Some(5));
    let gauge: Gauge = cluster.client().get("a").await?.unwrap();
    let synced = gauge.status.unwrap().conditions.condition("Synced").cloned().unwrap();
    assert_eq!((&*synced.status, &*synced.reason), ("False", "Failed"));
    Ok(())
}

#[steersman::test]
async fn a_child_that_goes_away_is_made_again_when_it_is_gone(cluster: Cluster) -> Result<()> {
    let log = settled(&cluster).await?;
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    let service: Service = cluster.client().patch("web", &hold).await?;
    cluster.client().delete::<Service>("web", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(last(&log), "waits for Service default/web to be gone");
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.client().patch::<Service, _>("web", &release).await?;
    cluster.eventually("web", |it: &Service| it.metadata.uid != service.metadata.uid).await
}

#[steersman::test]
async fn writes_past_the_cache_are_seen_in_it_by_the_next_reconcile(
    cluster: Cluster,
) -> Result<()> {
    // Creates a Secret under a new name whenever it sees none: a stale read would create two.
    cluster.install::<Gauge>().await?;
    cluster.run(Controller::of::<Gauge>().concurrency(4).reads::<Secret>().reconcile(
        async |gauge: Arc<Gauge>, ctx: Context<Gauge>| -> Result<Next> {
            let prefix = format!("{}-", gauge.metadata.name.as_deref().unwrap_or_default());
            let named = |secret: &Secret| secret.metadata.generate_name.as_ref() == Some(&prefix);
            let mut secret = Secret::default();
            secret.metadata.generate_name = Some(prefix.clone());
            ctx.live().dry_run().create(&secret).await?; // makes nothing that could be waited for
            if !ctx.list::<Secret>()?.iter().any(|secret| named(secret)) {
                ctx.live().create(&secret).await?;
                return Ok(Next::After(Duration::from_nanos(1)));
            }
            Ok(Next::Settled)
        },
    ));
    for name in ["a", "b", "c", "d"] {
        cluster.client().create(&gauge(name, 1)).await?;
    }
    cluster.advance(Duration::from_secs(60)).await;
    let secrets: Vec<Secret> = cluster.client().list(&ListOptions::namespace("default")).await?;
    assert_eq!(secrets.len(), 4);
    Ok(())
}

#[steersman::test]
async fn a_reconcile_brings_children_to_a_state_and_prunes(cluster: Cluster) -> Result<()> {
    cluster.install::<Gauge>().await?;
    cluster.run(Controller::of::<Gauge>().owns::<ConfigMap>().reconcile(
        async |gauge: Arc<Gauge>, ctx: Context<Gauge>| -> Result<Next> {
            let size = gauge.spec.size;
            for n in 0..size {
                ctx.create_or_update(config_map(&format!("map-{n}")), |map| {
                    map.data = Some([("size".to_owned(), size.to_string())].into());
                    Ok(())
                })
                .await?;
            }
            let wanted: Vec<String> = (0..size).map(|n| format!("map-{n}")).collect();
            ctx.prune(|map: &ConfigMap| wanted.contains(map.metadata.name.as_ref().unwrap()))
                .await?;
            Ok(Next::Settled)
        },
    ));
    let maps = async |uid: &str| -> Result<Vec<(String, String)>> {
        let all: Vec<ConfigMap> = cluster.client().list(&ListOptions::namespace("default")).await?;
        let ours = all
            .into_iter()
            .filter(|map| steersman::object::is_controlled_by(&map.metadata, uid))
            .map(|map| (ObjectKey::of(&map).name.to_string(), map.data.unwrap()["size"].clone()));
        Ok(ours.collect())
    };
    let uid = cluster.client().create(&gauge("a", 3)).await?.metadata.uid.unwrap();
    cluster.advance(Duration::from_secs(60)).await;
    let pairs = |of: &[&str], size: &str| -> Vec<(String, String)> {
        of.iter().map(|name| ((*name).to_owned(), size.to_owned())).collect()
    };
    assert_eq!(maps(&uid).await?, pairs(&["map-0", "map-1", "map-2"], "3"));
    poke(&cluster, json!({"spec": {"size": 1}})).await?;
    assert_eq!(maps(&uid).await?, pairs(&["map-0"], "1"));
    Ok(())
}
