//! `kube::Client` over the service, without a socket: what every part of a cluster uses.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::api::Api;

async fn client() -> Client {
    Client::new(Api::start().await.server, "default")
}

fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object
}

#[tokio::test(start_paused = true)]
async fn a_client_creates_lists_patches_and_deletes() {
    let config_maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client().await);
    let created = config_maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    assert!(created.uid().is_some());
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    });
    let applied =
        config_maps.patch("a", &PatchParams::apply("test"), &Patch::Apply(&applied)).await.unwrap();
    assert_eq!(applied.data.unwrap()["k"], "v");
    let list = config_maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    assert!(list.metadata.resource_version.is_some());
    let deleted = config_maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(deleted.right().is_some_and(|status| status.is_success()));
    let error = config_maps.get("a").await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.is_not_found()));
}

#[tokio::test(start_paused = true)]
async fn a_client_watches() {
    let client = client().await;
    let config_maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client.clone());
    let params = WatchParams::default();
    let mut events = config_maps.watch(&params, "0").await.unwrap().boxed();
    config_maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let event = events.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Bookmark(_))), "there was nothing");
    let event = events.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Added(object)) if object.name_any() == "a"));
    let namespaces: kube::Api<Namespace> = kube::Api::all(client);
    assert_eq!(namespaces.list(&ListParams::default()).await.unwrap().items.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_client_discovers_everything() {
    let discovery = kube::discovery::Discovery::new(client().await).run().await.unwrap();
    let group = discovery.get("apps").unwrap();
    assert!(
        group.recommended_resources().iter().any(|(resource, _)| resource.kind == "Deployment")
    );
}
