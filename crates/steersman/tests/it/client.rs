//! The client's verbs, on a server.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, Preconditions};
use serde_json::json;
use steersman::client::Change;
use steersman::{Client, Deleted, ListOptions, Result};
use steersman_testkit::Cluster;

use crate::reconcile::config_map;

fn with_data(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let mut map = config_map(name);
    set(&mut map, data);
    map
}

fn set(map: &mut ConfigMap, data: &[(&str, &str)]) {
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    map.data.get_or_insert_default().extend(data);
}

fn data<'a>(map: &'a ConfigMap, key: &str) -> Option<&'a str> {
    map.data.as_ref()?.get(key).map(String::as_str)
}

fn deployment(replicas: i32) -> Deployment {
    let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    serde_json::from_value(deployment).unwrap()
}

#[steersman::test]
async fn a_dry_run_is_answered_and_changes_nothing(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let dry = client.dry_run();
    assert!(dry.create(&config_map("a")).await?.metadata.uid.is_some());
    assert_eq!(client.get::<ConfigMap>("a").await?, None);
    let there = client.create(&with_data("a", &[("k", "v")])).await?;
    assert_eq!(data(&dry.apply(&with_data("a", &[("k", "w")])).await?, "k"), Some("w"));
    dry.delete::<ConfigMap>("a", &DeleteParams::default()).await?;
    dry.delete_all_of::<ConfigMap>(&ListOptions::namespace("default"), &DeleteParams::default())
        .await?;
    assert_eq!(client.get::<ConfigMap>("a").await?, Some(there));
    Ok(())
}

#[steersman::test]
async fn a_merge_sends_only_what_changed(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let old = client.create(&with_data("a", &[("mine", "1"), ("gone", "1")])).await?;
    client
        .merge(&old, &{
            let mut theirs = old.clone();
            set(&mut theirs, &[("theirs", "1")]);
            theirs
        })
        .await?;
    let mut new = old.clone();
    set(&mut new, &[("mine", "2")]);
    new.data.as_mut().unwrap().remove("gone");
    let merged = client.merge(&old, &new).await?;
    let keys: Vec<_> = merged.data.unwrap().into_iter().collect();
    let expected = [("mine", "2"), ("theirs", "1")];
    assert_eq!(keys, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let refused = client.merge_locked(&old, &new).await.unwrap_err();
    assert!(refused.is_conflict(), "somebody changed it: {refused}");
    Ok(())
}

#[steersman::test]
async fn what_has_no_version_cannot_be_locked(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let mut old = client.create(&config_map("a")).await?;
    old.metadata.resource_version = None;
    let mut new = old.clone();
    set(&mut new, &[("k", "v")]);
    let refused = client.merge_locked(&old, &new).await.unwrap_err();
    assert!(refused.is_terminal(), "{refused}");
    let text = "ConfigMap default/a cannot be locked: what was read of it has no resourceVersion";
    assert_eq!(refused.to_string(), text);
    let there = client.get::<ConfigMap>("a").await?.unwrap();
    assert_eq!(there.data, None);
    Ok(())
}

#[steersman::test]
async fn a_merge_never_reaches_another_object_of_the_name(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let old = client.create(&config_map("a")).await?;
    client.delete::<ConfigMap>("a", &DeleteParams::default()).await?;
    client.create(&config_map("a")).await?;
    let mut new = old.clone();
    set(&mut new, &[("k", "v")]);
    let refused = client.merge(&old, &new).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    assert_eq!(client.merge(&old, &old).await?, old, "no difference, no request");
    Ok(())
}

#[steersman::test]
async fn metadata_alone_is_merged_and_takes_the_place_of_nothing(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&with_data("a", &[("k", "v")])).await?;
    let old = client.get_metadata::<ConfigMap>("a").await?.unwrap();
    let mut new = old.clone();
    new.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    for refused in [client.update(&new).await, client.create(&new).await] {
        let refused = refused.unwrap_err();
        assert!(refused.is_terminal() && refused.to_string().contains("merge"), "{refused}");
    }
    let merged = client.merge(&old, &new).await?;
    assert_eq!(merged.metadata.labels, new.metadata.labels);
    let there = client.get::<ConfigMap>("a").await?.unwrap();
    assert_eq!((data(&there, "k"), &there.metadata.labels), (Some("v"), &new.metadata.labels));
    Ok(())
}

#[steersman::test]
async fn create_or_update_writes_only_a_difference(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let bring = async |value: &str| {
        client
            .create_or_update(config_map("a"), |map| {
                set(map, &[("k", value)]);
                Ok(())
            })
            .await
    };
    let (created, change) = bring("1").await?;
    assert_eq!(change, Change::Created);
    let (same, change) = bring("1").await?;
    assert_eq!((change, &same), (Change::Unchanged, &created));
    let (updated, change) = bring("2").await?;
    assert_eq!((change, data(&updated, "k")), (Change::Updated, Some("2")));
    let renamed = client.create_or_update(config_map("a"), |map| {
        map.metadata.name = Some("b".into());
        Ok(())
    });
    assert!(renamed.await.unwrap_err().is_terminal());
    let (patched, change) = client
        .create_or_patch(config_map("a"), |map| {
            set(map, &[("more", "3")]);
            Ok(())
        })
        .await?;
    assert_eq!((change, data(&patched, "k")), (Change::Updated, Some("2")));
    Ok(())
}

#[steersman::test]
async fn an_apply_can_give_way_to_others(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let other = client.with_field_manager("other");
    other.apply(&with_data("a", &[("k", "theirs")])).await?;
    let mine = with_data("a", &[("k", "mine")]);
    assert!(client.apply_unless_conflict(&mine).await.unwrap_err().is_conflict());
    assert_eq!(data(&client.apply(&mine).await?, "k"), Some("mine"));
    Ok(())
}

#[steersman::test]
async fn many_objects_come_in_pages_and_go_at_once(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    for n in 0..7 {
        let mut map = config_map(&format!("map-{n}"));
        map.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
        client.create(&map).await?;
    }
    client.create(&config_map("other")).await?;
    let options = ListOptions::namespace("default").labels("app=web");
    let mut pages = client.pages::<ConfigMap>(&options, 3);
    let mut sizes = Vec::new();
    while let Some(page) = pages.next().await? {
        sizes.push(page.len());
    }
    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(client.list_metadata::<ConfigMap>(&options).await?.len(), 7);
    let metadata = client.get_metadata::<ConfigMap>("map-0").await?.unwrap();
    assert_eq!(metadata.metadata.name.as_deref(), Some("map-0"));
    client.delete_all_of::<ConfigMap>(&options, &DeleteParams::default()).await?;
    assert_eq!(client.list::<ConfigMap>(&options).await?, []);
    assert!(client.get::<ConfigMap>("other").await?.is_some());
    Ok(())
}

#[steersman::test]
async fn a_deletion_can_have_preconditions(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let map = client.create(&config_map("a")).await?;
    let only = |uid: &str| {
        let uid = Some(uid.to_owned());
        DeleteParams::default().preconditions(Preconditions { uid, resource_version: None })
    };
    let refused = client.delete::<ConfigMap>("a", &only("another")).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    let uid = map.metadata.uid.unwrap();
    assert_eq!(client.delete::<ConfigMap>("a", &only(&uid)).await?, Deleted::Gone);
    assert_eq!(client.delete::<ConfigMap>("a", &only(&uid)).await?, Deleted::NotFound);
    Ok(())
}

#[steersman::test]
async fn what_can_be_scaled_is_scaled_and_pods_are_evicted(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    assert!(client.scale::<Deployment>("web").await?.is_none());
    client.create(&deployment(1)).await?;
    let scale = client.scale::<Deployment>("web").await?.unwrap();
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(1));
    client.set_scale::<Deployment>("web", 2).await?;
    let ready = |it: &Deployment| it.status.as_ref().and_then(|s| s.ready_replicas) == Some(2);
    cluster.eventually("web", ready).await?;
    let pod = pods(client).await?.remove(0);
    let uid = pod.metadata.uid.clone();
    client.evict(steersman::ObjectKey::of(&pod), None).await?;
    cluster.gone::<Pod>(steersman::ObjectKey::of(&pod)).await?;
    assert!(pods(client).await?.iter().all(|pod| pod.metadata.uid != uid));
    Ok(())
}

async fn pods(client: &Client) -> Result<Vec<Pod>> {
    client.list(&ListOptions::namespace("default")).await
}
