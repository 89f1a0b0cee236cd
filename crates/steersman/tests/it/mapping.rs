//! Whom a change of another object concerns, where an index or the caches have to tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use steersman::controller::MapContext;
use steersman::{Controller, Error, ObjectKey, Result};
use steersman_testkit::Cluster;

use crate::reconcile::config_map;
use crate::sources::{run, secret, woken};

/// A ConfigMap that refers to a Secret.
fn referring(name: &str, to: &str) -> ConfigMap {
    let mut map = config_map(name);
    map.data = Some([("secret".to_owned(), to.to_owned())].into());
    map
}

fn reference(map: &ConfigMap) -> Option<String> {
    map.data.as_ref()?.get("secret").cloned()
}

async fn create(cluster: &Cluster, maps: &[ConfigMap]) -> Result<()> {
    for map in maps {
        cluster.client().create(map).await?;
    }
    Ok(())
}

#[steersman::test]
async fn a_changed_object_wakes_those_that_refer_to_it(cluster: Cluster) -> Result<()> {
    create(&cluster, &[referring("a", "s"), referring("b", "s"), referring("c", "t")]).await?;
    let builder = Controller::of::<ConfigMap>().watches_referenced::<Secret, _>(reference);
    let mut records = run(&cluster, builder, &[]).await?;
    cluster.client().create(&secret("s", &[])).await?;
    let expected = ["default/a: Secret default/s created", "default/b: Secret default/s created"];
    assert_eq!(woken(&cluster, &mut records).await, expected);
    cluster.client().update(&referring("b", "t")).await?;
    woken(&cluster, &mut records).await;
    cluster.client().create(&secret("t", &[])).await?;
    let woken = woken(&cluster, &mut records).await;
    assert_eq!(woken.len(), 2, "b refers to t by now: {woken:?}");
    assert!(woken[0].starts_with("default/b:") && woken[1].starts_with("default/c:"), "{woken:?}");
    Ok(())
}

#[steersman::test]
async fn an_index_finds_whom_a_change_concerns(cluster: Cluster) -> Result<()> {
    create(&cluster, &[referring("a", "s"), referring("b", "t")]).await?;
    let builder = Controller::of::<ConfigMap>()
        .index("by-secret", reference)
        .watches_indexed("by-secret", |secret: &Secret| secret.metadata.name.clone());
    let mut records = run(&cluster, builder, &[]).await?;
    cluster.client().create(&secret("t", &[])).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/b: Secret default/t created"]);
    Ok(())
}

#[test]
#[should_panic(expected = "no index `by-secret`: add `.index(\"by-secret\", …)`")]
fn an_index_that_is_not_there_is_noticed_when_the_controller_is_built() {
    let named = |secret: &Secret| secret.metadata.name.clone();
    let _ = Controller::of::<ConfigMap>().watches_indexed("by-secret", named);
}

#[test]
#[should_panic(expected = "index `by-secret` is searched by alloc::string::String, not by")]
fn an_index_is_searched_by_what_it_is_made_of() {
    let named = |secret: &Secret| Some(ObjectKey::of(secret));
    let builder = Controller::of::<ConfigMap>().index("by-secret", reference);
    let _ = builder.watches_indexed("by-secret", named);
}

#[steersman::test]
async fn a_mapping_may_read_caches_and_wait_and_is_tried_again(cluster: Cluster) -> Result<()> {
    create(&cluster, &[referring("a", "s"), referring("b", "t")]).await?;
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let map = move |secret: Arc<Secret>, context: MapContext| {
        let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if first {
                return Err(Error::message("the first time goes wrong"));
            }
            let name = secret.metadata.name.clone();
            let live: Option<Secret> = context.live().get(ObjectKey::of(&*secret)).await?;
            assert!(live.is_some());
            let maps = context.cache::<ConfigMap>()?.list();
            let concerned = maps.iter().filter(|map| reference(map) == name);
            Ok(concerned.map(ObjectKey::of).collect::<Vec<_>>())
        }
    };
    let mut records = run(&cluster, Controller::of::<ConfigMap>().watches_async(map), &[]).await?;
    cluster.client().create(&secret("s", &[])).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/a: Secret default/s created"]);
    assert_eq!(tries.load(Ordering::Relaxed), 2);
    Ok(())
}

#[steersman::test]
async fn a_bare_name_is_in_the_namespace_of_what_changed(cluster: Cluster) -> Result<()> {
    let builder = Controller::of::<ConfigMap>()
        .watches(|secret: &Secret| secret.metadata.name.clone())
        // Of a cluster-scoped object nobody knows which namespace is meant: that is an error.
        .watches(|namespace: &Namespace| namespace.metadata.name.clone());
    let mut records = run(&cluster, builder, &["s"]).await?;
    cluster.client().create(&secret("s", &[])).await?;
    assert_eq!(woken(&cluster, &mut records).await, ["default/s: Secret default/s created"]);
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("s".into());
    cluster.client().create(&namespace).await?;
    assert_eq!(woken(&cluster, &mut records).await, [""; 0]);
    Ok(())
}
