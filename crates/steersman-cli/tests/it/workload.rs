//! Deployments and caches, as a client of some server sees them.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman::informer::Informer;
use tokio::time::timeout;

use crate::program::PATIENCE;

/// Waits until something holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    let held = timeout(PATIENCE, async {
        while !holds().await {
            tick.tick().await;
        }
    });
    held.await.unwrap_or_else(|_| panic!("after {PATIENCE:?} still not: {what}"));
}

/// Creates a Deployment.
pub(crate) async fn deploy(client: &kube::Client, name: &str, replicas: i32) {
    let labels = json!({"app": name});
    let deployment = json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
        }},
    });
    let deployment = serde_json::from_value(deployment).unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
}

/// Asks a Deployment for so many replicas of this image.
pub(crate) async fn roll(client: &kube::Client, name: &str, replicas: i32, image: &str) {
    let containers = json!([{"name": "main", "image": image}]);
    let spec = json!({"replicas": replicas, "template": {"spec": {"containers": containers}}});
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let patch = Patch::Strategic(json!({"spec": spec}));
    deployments.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until a Deployment is as it was last asked for.
pub(crate) async fn rolled_out(client: &kube::Client, name: &str, replicas: i32) {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    eventually(&format!("{name} has {replicas} replicas of its latest kind"), || async {
        let Ok(found) = deployments.get(name).await else { return false };
        let Some(status) = found.status else { return false };
        let wanted = Some(replicas);
        status.observed_generation == found.metadata.generation
            && (status.replicas, status.updated_replicas) == (wanted, wanted)
            && status.available_replicas == wanted
    })
    .await;
}

/// Name and uid of every Pod.
pub(crate) async fn pods(client: &kube::Client) -> BTreeMap<String, String> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let found = pods.list(&ListParams::default()).await.unwrap();
    let named = |pod: Pod| Some((pod.metadata.name?, pod.metadata.uid?));
    found.into_iter().filter_map(named).collect()
}

/// Waits until a cache holds the same ConfigMaps, in the same versions, as the server.
pub(crate) async fn assert_equal(cache: &Informer<ConfigMap>, client: &kube::Client) {
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let versions = |maps: Vec<ConfigMap>| -> BTreeMap<(String, String), String> {
        let named = |map: ConfigMap| {
            let metadata = map.metadata;
            Some(((metadata.namespace?, metadata.name?), metadata.resource_version?))
        };
        maps.into_iter().filter_map(named).collect()
    };
    eventually("the cache is equal to the store", || async {
        let Ok(list) = maps.list(&ListParams::default()).await else { return false };
        let cached = cache.cache().list().iter().map(|map| (**map).clone()).collect();
        versions(cached) == versions(list.items)
    })
    .await;
}
