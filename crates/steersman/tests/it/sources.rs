//! Where a controller's keys come from: owners, metadata, channels, streams, timers.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::DeleteParams;
use kube::core::PartialObjectMeta;
use steersman::controller::{Builder, ReconcileRecord};
use steersman::handler::{EnqueueRequestForObject, EnqueueRequestsFromMapFunc, Request};
use steersman::source::{Source, Watch, receive};
use steersman::workqueue::Priority;
use steersman::{Context, Controller, Kind, Next, ObjectKey, Result, predicate, selector};
use steersman_testkit::Cluster;
use tokio::sync::{broadcast, mpsc};

use crate::reconcile::{config_map, of_the_test};

type Records = broadcast::Receiver<Arc<ReconcileRecord>>;

/// A controller of ConfigMaps that does nothing.
fn idle(builder: Builder<ConfigMap>) -> Controller {
    builder
        .only(of_the_test)
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled))
}

/// Runs a controller over ConfigMaps of these names, until it is settled.
pub(crate) async fn run(
    cluster: &Cluster,
    builder: Builder<ConfigMap>,
    names: &[&str],
) -> Result<Records> {
    let mut records = cluster.reconciles();
    cluster.run(idle(builder));
    for name in names {
        cluster.client().create(&config_map(name)).await?;
    }
    cluster.advance(Duration::from_secs(20)).await;
    while records.try_recv().is_ok() {}
    Ok(records)
}

/// What was reconciled within a second, and why.
pub(crate) async fn woken(cluster: &Cluster, records: &mut Records) -> Vec<String> {
    cluster.advance(Duration::from_secs(1)).await;
    let records = std::iter::from_fn(|| records.try_recv().ok());
    let mut woken: Vec<_> = records.map(|one| format!("{}: {}", one.key, one.causes)).collect();
    woken.sort();
    woken
}

async fn owner(cluster: &Cluster, name: &str, controller: bool) -> Result<OwnerReference> {
    let map: ConfigMap = cluster.client().get(name).await?.unwrap();
    Ok(OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: name.into(),
        uid: map.metadata.uid.unwrap(),
        controller: controller.then_some(true),
        ..OwnerReference::default()
    })
}

pub(crate) fn secret(name: &str, owners: &[OwnerReference]) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.into());
    secret.metadata.owner_references = Some(owners.to_vec());
    secret
}

#[steersman::test]
async fn a_child_that_changes_its_owner_wakes_the_old_and_the_new_one(
    cluster: Cluster,
) -> Result<()> {
    let builder = Controller::of::<ConfigMap>().owns::<Secret>();
    let mut records = run(&cluster, builder, &["a", "b"]).await?;
    let (a, b) = (owner(&cluster, "a", true).await?, owner(&cluster, "b", true).await?);
    cluster.client().create(&secret("s", &[a])).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/a: Secret default/s created"]);
    cluster.client().update(&secret("s", &[b])).await?;
    let woken = woken(&cluster, &mut records).await;
    assert_eq!(woken.len(), 2, "{woken:?}");
    assert!(woken[0].starts_with("default/a:") && woken[1].starts_with("default/b:"), "{woken:?}");
    Ok(())
}

#[steersman::test]
async fn every_owner_is_woken_if_that_is_wanted_and_otherwise_only_the_controller(
    cluster: Cluster,
) -> Result<()> {
    let all = Controller::of::<ConfigMap>().named("all").owns_any::<Secret>();
    let mut records = run(&cluster, all, &["a", "b"]).await?;
    cluster.run(idle(Controller::of::<ConfigMap>().named("one").owns::<Secret>()));
    cluster.advance(Duration::from_secs(20)).await;
    while records.try_recv().is_ok() {}
    let (a, b) = (owner(&cluster, "a", true).await?, owner(&cluster, "b", false).await?);
    cluster.client().create(&secret("s", &[a, b])).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let records = std::iter::from_fn(|| records.try_recv().ok());
    let mut woken: Vec<_> = records.map(|one| format!("{} {}", one.controller, one.key)).collect();
    woken.sort();
    assert_eq!(woken, ["all default/a", "all default/b", "one default/a"]);
    Ok(())
}

#[steersman::test]
async fn children_are_watched_and_read_by_their_metadata_alone(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    let (send, mut seen) = mpsc::channel(16);
    let controller = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .owns_metadata::<Secret>()
        .reconcile(move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let send = send.clone();
            async move {
                let children = ctx.children::<PartialObjectMeta<Secret>>()?;
                let names: Vec<_> =
                    children.iter().filter_map(|c| c.metadata.name.clone()).collect();
                send.send(names.join(",")).await?;
                ctx.children::<Secret>().map(|_| Next::Settled)
            }
        });
    cluster.run(controller);
    cluster.client().create(&config_map("a")).await?;
    let outcome = records.recv().await?.outcome.to_string();
    assert!(outcome.contains("did not declare that it reads Secret"), "{outcome}");
    let a = owner(&cluster, "a", true).await?;
    cluster.client().create(&secret("s", &[a])).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!((seen.recv().await.as_deref(), seen.recv().await.as_deref()), (Some(""), Some("s")));
    assert_eq!(records.recv().await?.causes.to_string(), "Secret default/s created");
    Ok(())
}

#[steersman::test]
async fn a_controller_of_metadata_sees_no_content(cluster: Cluster) -> Result<()> {
    let (send, mut seen) = mpsc::channel(16);
    let controller = Controller::of_metadata::<ConfigMap>()
        .when(predicate::label_selector(selector::parse("app in (web,api)")?))
        .reconcile(move |map: Arc<PartialObjectMeta<ConfigMap>>, _: Context<_>| {
            let send = send.clone();
            async move {
                send.send(serde_json::to_value(&*map)?).await?;
                Ok(Next::Settled)
            }
        });
    cluster.run(controller);
    let mut map = config_map("a");
    map.data = Some([("k".to_owned(), "v".to_owned())].into());
    map.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    cluster.client().create(&map).await?;
    let seen = seen.recv().await.unwrap();
    assert_eq!(seen["metadata"]["name"], "a");
    assert_eq!((&seen["kind"], seen.get("data")), (&"PartialObjectMetadata".into(), None));
    Ok(())
}

#[steersman::test]
async fn a_source_has_predicates_and_a_handler_of_its_own(cluster: Cluster) -> Result<()> {
    let web = selector::parse("app=web")?;
    let watch = Watch::<Secret>::of().when(predicate::label_selector(web));
    let builder = Controller::of::<ConfigMap>().watches_with(watch, EnqueueRequestForObject);
    let mut records = run(&cluster, builder, &["a", "b"]).await?;
    let mut labelled = secret("a", &[]);
    labelled.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    cluster.client().create(&labelled).await?;
    cluster.client().create(&secret("b", &[])).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/a: Secret default/a created"]);
    // A deletion passes even where the selector does not.
    cluster.client().delete::<Secret>("b", &DeleteParams::default()).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/b: Secret default/b deleted"]);
    Ok(())
}

#[steersman::test]
async fn keys_come_through_a_channel_and_from_a_stream(cluster: Cluster) -> Result<()> {
    let (send, receiver) = mpsc::channel::<Request>(4);
    let (keys, stream) = mpsc::channel::<ObjectKey>(4);
    let builder = Controller::of::<ConfigMap>()
        .source(Source::channel(receiver).named("callbacks"))
        .source(Source::stream(receive(stream)).named("a queue").priority(Priority(5)));
    let mut records = run(&cluster, builder, &["a", "b"]).await?;
    send.send(Request::new("default/a").priority(Priority(50))).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/a: asked for by callbacks"]);
    keys.send("default/b".into()).await?;
    keys.send("default/nobody".into()).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/b: asked for by a queue"]);
    drop(send); // the end of one source is not the end of others
    keys.send("default/a".into()).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/a: asked for by a queue"]);
    Ok(())
}

#[steersman::test]
async fn objects_from_outside_are_handled_as_generic_events(cluster: Cluster) -> Result<()> {
    let (send, receiver) = mpsc::channel::<Secret>(4);
    let not_b = predicate::funcs().on_generic(|s: &Secret| s.metadata.name.as_deref() != Some("b"));
    let map = EnqueueRequestsFromMapFunc::new(|secret: &Secret| {
        secret
            .metadata
            .name
            .iter()
            .map(|name| ObjectKey::namespaced("default", name.as_str()))
            .collect::<Vec<_>>()
    });
    let source = Source::generic(Watch::of().when(not_b), receive(receiver), map);
    let mut records =
        run(&cluster, Controller::of::<ConfigMap>().source(source), &["a", "b"]).await?;
    send.send(secret("a", &[])).await?;
    send.send(secret("b", &[])).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/a: Secret a was pointed at"]);
    Ok(())
}

#[steersman::test]
async fn timers_bring_given_keys_or_every_object_back(cluster: Cluster) -> Result<()> {
    let keys = Source::every(Duration::from_secs(600), || ["default/b"]).named("every ten minutes");
    let builder = Controller::of::<ConfigMap>().every(Duration::from_secs(3600)).source(keys);
    let mut records = run(&cluster, builder, &["a", "b"]).await?;
    cluster.advance(Duration::from_secs(620)).await;
    assert_eq!(woken(&cluster, &mut records).await, ["default/b: asked for by every ten minutes"]);
    cluster.advance(Duration::from_secs(3600)).await;
    let woken = woken(&cluster, &mut records).await;
    let resynced =
        ["default/a: ConfigMap default/a resynced", "default/b: ConfigMap default/b resynced"];
    assert!(resynced.iter().all(|text| woken.contains(&(*text).into())), "{woken:?}");
    assert_eq!(woken.len(), 8, "two resyncs and six ticks: {woken:?}");
    Ok(())
}

#[steersman::test]
async fn a_source_that_panics_is_not_the_end_of_the_controller(cluster: Cluster) -> Result<()> {
    let broken = Source::every(Duration::from_secs(1), || -> [ObjectKey; 1] { panic!("broken") });
    let builder = Controller::of::<ConfigMap>().source(broken);
    let mut records = run(&cluster, builder, &["a"]).await?;
    cluster.client().create(&config_map("b")).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/b: ConfigMap default/b created"]);
    Ok(())
}

#[steersman::test]
async fn the_keys_of_urgent_sources_come_first(cluster: Cluster) -> Result<()> {
    let (send, receiver) = mpsc::channel::<Request>(8);
    let mut records = cluster.reconciles();
    let slow = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .source(Source::channel(receiver))
        .watches_with(Kind::<Secret>::of(), EnqueueRequestForObject)
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let slow = std::future::pending::<()>();
            let _ = tokio::time::timeout(Duration::from_secs(1), slow).await;
            Ok(Next::Settled)
        });
    cluster.run(slow);
    for name in ["a", "b", "c"] {
        cluster.client().create(&config_map(name)).await?;
    }
    cluster.advance(Duration::from_secs(20)).await;
    while records.try_recv().is_ok() {}
    for (name, priority) in [("a", 0), ("b", 0), ("c", 1000)] {
        let key = ObjectKey::namespaced("default", name);
        send.send(Request::new(key).priority(Priority(priority))).await?;
    }
    cluster.advance(Duration::from_secs(10)).await;
    let records = std::iter::from_fn(|| records.try_recv().ok());
    let order: Vec<_> = records.map(|one| one.key.name.to_string()).collect();
    assert_eq!(order.iter().position(|name| name == "c").map(|place| place < 2), Some(true));
    Ok(())
}
