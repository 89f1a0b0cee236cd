//! Informers on a cluster: handlers that come and go, resyncs, sharing, kinds that vanish.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DeleteParams;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use steersman::cache::Form;
use steersman::caches::Caches;
use steersman::informer::{CacheConfig, Event, HandlerOptions, Informer};
use steersman::metrics::Metrics;
use steersman::reflector::Selection;
use steersman::{ObjectKey, Result};
use steersman_testkit::Cluster;

use crate::reconcile::config_map;

/// What a handler heard, in a few words each.
type Heard = Arc<Mutex<Vec<String>>>;

fn listener<K: steersman::object::Cacheable>() -> (Heard, impl FnMut(&Event<K>) + Send + 'static) {
    let heard = Heard::default();
    let shared = Arc::clone(&heard);
    (heard, move |event| shared.lock().unwrap().push(format!("{event:?}")))
}

fn take(heard: &Heard) -> Vec<String> {
    std::mem::take(&mut *heard.lock().unwrap())
}

fn maps_of_the_test(cluster: &Cluster) -> Informer<ConfigMap> {
    let selection = Selection {
        namespace: Some("default".into()),
        fields: Some("metadata.name!=kube-root-ca.crt".into()),
        ..Selection::default()
    };
    Informer::builder(cluster.client().kube().clone()).selection(selection).start()
}

#[steersman::test]
async fn a_handler_that_joins_late_hears_of_what_is_there_first(cluster: Cluster) -> Result<()> {
    cluster.client().create(&config_map("a")).await?;
    let informer = maps_of_the_test(&cluster);
    let (early, handler) = listener();
    informer.add_handler(handler).await.synced().await;
    cluster.client().create(&config_map("b")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let (late, handler) = listener();
    informer.add_handler(handler).await.synced().await;
    assert_eq!(take(&late), ["Listed(default/a)", "Listed(default/b)"]);
    cluster.client().delete::<ConfigMap>("a", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(take(&late), ["Deleted(default/a)"]);
    assert_eq!(take(&early), ["Listed(default/a)", "Added(default/b)", "Deleted(default/a)"]);
    Ok(())
}

#[steersman::test]
async fn only_the_handler_that_asked_for_a_resync_hears_of_it(cluster: Cluster) -> Result<()> {
    cluster.client().create(&config_map("a")).await?;
    let informer = maps_of_the_test(&cluster);
    let ((plain, first), (resynced, second)) = (listener(), listener());
    informer.add_handler(first).await.synced().await;
    let every_minute =
        HandlerOptions { resync: Some(Duration::from_secs(60)), ..HandlerOptions::default() };
    let handler = informer.add_handler_with(every_minute, second).await;
    handler.synced().await;
    cluster.advance(Duration::from_secs(140)).await;
    assert_eq!(take(&plain), ["Listed(default/a)"]);
    let twice = ["Listed(default/a)", "Resynced(default/a)", "Resynced(default/a)"];
    assert_eq!(take(&resynced), twice);
    handler.remove().await;
    cluster.advance(Duration::from_secs(140)).await;
    assert!(take(&resynced).is_empty());
    Ok(())
}

#[steersman::test]
async fn an_informer_is_shared_and_stops_with_its_last_user(cluster: Cluster) -> Result<()> {
    let metrics = Metrics::default();
    let caches = Caches::new(cluster.client().kube().clone(), metrics.clone());
    let first = caches.informer::<ConfigMap>();
    let second = caches.informer::<ConfigMap>();
    first.cache().synced().await;
    assert!(second.cache().progress().synced, "both are the same");
    assert!(metrics.render().contains("informer_objects{name=\"ConfigMap\",group=\"\"}"));
    let cache = first.cache().clone();
    drop((first, second));
    assert!(caches.find::<ConfigMap>().is_none());
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let key = ObjectKey::from("default/a");
    assert!(cache.get(&key).is_none(), "nobody follows any more");
    assert!(!metrics.render().contains("informer_objects{"));
    let again = caches.informer::<ConfigMap>();
    again.cache().synced().await;
    assert!(again.cache().get(&key).is_some());
    Ok(())
}

#[steersman::test]
async fn both_forms_show_the_same_pods(cluster: Cluster) -> Result<()> {
    let client = cluster.client().kube();
    let compact = Informer::<Pod>::builder(client.clone()).start();
    let config = CacheConfig::default().form(Form::Typed);
    let typed = Informer::<Pod>::builder(client.clone()).cache(config).start();
    for n in 0..200 {
        let pod = json!({
            "metadata": {"name": format!("web-{n}"), "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web:v1"}]},
        });
        cluster.client().create(&serde_json::from_value::<Pod>(pod)?).await?;
    }
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(compact.cache().len(), 200);
    assert_eq!(compact.cache().list(), typed.cache().list());
    let selector = kube::core::Selector::from_iter([("app", "web")]);
    assert_eq!(compact.cache().by_labels(Some("default"), &selector).len(), 200);
    Ok(())
}

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "test.steersman.dev", version = "v1", kind = "Boat", namespaced)]
struct BoatSpec {
    masts: u32,
}

#[steersman::test]
async fn a_kind_whose_definition_goes_and_returns_is_followed_again(
    cluster: Cluster,
) -> Result<()> {
    cluster.install::<Boat>().await?;
    cluster.advance(Duration::from_secs(1)).await;
    let mut boat = Boat::new("argo", BoatSpec { masts: 1 });
    boat.metadata.namespace = Some("default".into());
    cluster.client().create(&boat).await?;
    let informer = Informer::<Boat>::builder(cluster.client().kube().clone()).start();
    let (heard, handler) = listener();
    informer.add_handler(handler).await.synced().await;
    let name = Boat::crd_name();
    cluster.client().delete::<CustomResourceDefinition>(name, &DeleteParams::default()).await?;
    cluster.gone::<CustomResourceDefinition>(name).await?;
    cluster.advance(Duration::from_secs(900)).await;
    assert_eq!(take(&heard).len(), 2, "listed, and deleted or vanished");
    assert!(informer.cache().is_empty());
    assert!(informer.status().phase.starts_with("not served"), "{}", informer.status().phase);

    cluster.install::<Boat>().await?;
    cluster.advance(Duration::from_secs(1)).await;
    cluster.client().create(&boat).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(take(&heard), ["Added(default/argo)"]);
    Ok(())
}

#[steersman::test]
async fn a_cache_holds_what_the_manager_chose(cluster: Cluster) -> Result<()> {
    let caches = Caches::new(cluster.client().kube().clone(), Metrics::default());
    let config = CacheConfig::<Pod>::default().strip_managed_fields();
    caches.configure(config.transform(|pod| pod.status = None));
    let informer = caches.informer::<Pod>();
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "web:v1"}]}});
    cluster.client().create(&serde_json::from_value::<Pod>(pod)?).await?;
    cluster.eventually("web", |pod: &Pod| pod.status.is_some()).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let cached = informer.cache().get(&ObjectKey::from("default/web")).unwrap();
    assert_eq!((&cached.status, &cached.metadata.managed_fields), (&None, &None));
    assert!(cached.spec.is_some());
    Ok(())
}

#[steersman::test]
async fn a_transform_that_panics_costs_its_object_and_nothing_else(cluster: Cluster) -> Result<()> {
    for name in ["a", "bad", "c"] {
        cluster.client().create(&config_map(name)).await?;
    }
    let client = cluster.client().kube().clone();
    let config = CacheConfig::default().transform(|map: &mut ConfigMap| {
        assert_ne!(map.metadata.name.as_deref(), Some("bad"), "on purpose");
    });
    let informer = Informer::<ConfigMap>::builder(client).cache(config).start();
    informer.cache().synced().await;
    let names: Vec<String> = informer
        .cache()
        .list_namespace("default")
        .iter()
        .filter_map(|map| map.metadata.name.clone())
        .filter(|name| name != "kube-root-ca.crt")
        .collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(informer.status().undecodable, 1);
    cluster.client().create(&config_map("d")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert!(informer.cache().get(&ObjectKey::from("default/d")).is_some(), "it goes on");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_hangs_delays_nobody_and_is_shown() -> Result<()> {
    let cluster = steersman_cluster::Cluster::builder().nodes(0).controllers(false).start().await?;
    let client = steersman::Client::new(cluster.client(), "test");
    client.create(&config_map("a")).await?;
    let metrics = Metrics::default();
    let selection = Selection { namespace: Some("default".into()), ..Selection::default() };
    let informer = Informer::<ConfigMap>::builder(cluster.client())
        .selection(selection)
        .metrics(&metrics)
        .start();
    let (open, gate) = std::sync::mpsc::sync_channel::<()>(0);
    let slow_heard = Arc::new(Mutex::new(0));
    let (count, last) = (Arc::clone(&slow_heard), Arc::new(Mutex::new(String::new())));
    let slow_last = Arc::clone(&last);
    let options = HandlerOptions { in_order: 10, blocking: true, ..HandlerOptions::default() };
    informer
        .add_handler_with(options, move |event| {
            let _ = gate.recv(); // an error means that the gate stands open
            *count.lock().unwrap() += 1;
            *slow_last.lock().unwrap() = event.object().resource_version().unwrap().to_owned();
        })
        .await;
    let (fast, mut fast_heard) = tokio::sync::watch::channel(String::new());
    informer
        .add_handler(move |event| {
            fast.send_replace(event.object().resource_version().unwrap().to_owned());
        })
        .await
        .synced()
        .await;
    let mut newest = String::new();
    for n in 0..100 {
        let mut map = config_map("a");
        map.data = Some([("n".to_owned(), n.to_string())].into());
        newest = client.update(&map).await?.metadata.resource_version.unwrap();
    }
    fast_heard.wait_for(|version| *version == newest).await?;
    let status = informer.status();
    assert_eq!(*slow_heard.lock().unwrap(), 0, "it hangs");
    assert!(status.handlers[0].queued <= 12 && status.handlers[0].merged >= 80, "{status:?}");
    let text = metrics.render();
    let merged = text.lines().find(|line| line.starts_with("informer_handler_merged_events_total"));
    assert!(merged.is_some_and(|line| !line.ends_with(" 0")), "{text}");

    drop(open);
    while *last.lock().unwrap() != newest {
        tokio::task::yield_now().await;
    }
    assert!(*slow_heard.lock().unwrap() < 20);
    cluster.stop().await;
    Ok(())
}

#[derive(kube::Resource, Serialize, Deserialize, Clone, Debug)]
#[resource(inherit = "Pod")]
struct PodView {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    spec: Placement,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct Placement {
    node_name: Option<String>,
}

#[steersman::test]
async fn a_slim_view_of_a_kind_is_cached_like_any_other(cluster: Cluster) -> Result<()> {
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "web:v1"}]}});
    cluster.client().create(&serde_json::from_value::<Pod>(pod)?).await?;
    let bound = |view: &PodView| view.spec.node_name.is_some();
    cluster.eventually("web", bound).await?;
    let caches = Caches::new(cluster.client().kube().clone(), Metrics::default());
    let informer = caches.informer::<PodView>();
    informer.cache().synced().await;
    assert!(informer.cache().list().iter().all(|view| bound(view)));
    Ok(())
}
