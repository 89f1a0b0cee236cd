//! Objects that the scenarios share, and waiting for many of them.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steersman::{Error, ListOptions, Object, Result};
use steersman_testkit::Cluster;

/// An object from its JSON.
pub(crate) fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the JSON describes an object of this kind")
}

/// Who wrote an object, how, and which part of it.
pub(crate) fn managers<K: Object>(object: &K) -> Vec<String> {
    let entries = object.meta().managed_fields.iter().flatten().map(|entry| {
        let words = [&entry.manager, &entry.operation, &entry.subresource];
        words.map(|word| word.clone().unwrap_or_default()).join(" ").trim_end().to_owned()
    });
    let mut managers: Vec<String> = entries.collect();
    managers.sort();
    managers
}

pub(crate) fn deployment(name: &str, replicas: i32, image: &str) -> Deployment {
    object(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    }))
}

pub(crate) fn pod(name: &str, spec: &Value) -> Pod {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    object(pod)
}

/// A ConfigMap that these ConfigMaps own.
pub(crate) fn config_map(name: &str, owners: &[&ConfigMap]) -> ConfigMap {
    let owners: Vec<Value> = owners
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner.metadata.name,
                "uid": owner.metadata.uid,
                "blockOwnerDeletion": true,
            })
        })
        .collect();
    object(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
    }))
}

/// The objects of a kind in the namespace `default`.
pub(crate) async fn all<K: Object>(cluster: &Cluster) -> Result<Vec<K>> {
    cluster.client().list(&ListOptions::namespace("default")).await
}

/// Waits until the objects of a kind in the namespace `default` are as wanted.
pub(crate) async fn all_become<K: Object>(
    cluster: &Cluster,
    wanted: impl Fn(&[K]) -> bool,
) -> Result<Vec<K>> {
    for _ in 0..10_000 {
        let objects = all::<K>(cluster).await?;
        if wanted(&objects) {
            return Ok(objects);
        }
        cluster.advance(Duration::from_millis(10)).await;
    }
    let objects = serde_json::to_string_pretty(&all::<K>(cluster).await?)?;
    Err(Error::message(format!("not as wanted: {objects}")))
}

/// The image of a Pod's first container.
pub(crate) fn image(pod: &Pod) -> &str {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    containers.first().and_then(|first| first.image.as_deref()).unwrap_or_default()
}

/// Whether a Pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// What the built-in controllers have counted under this name, with these labels as they are shown.
pub(crate) async fn counted(cluster: &Cluster, name: &str) -> Result<Option<f64>> {
    let metrics = http::Request::get("/metrics").body(Vec::new())?;
    let metrics = cluster.client().kube().request_text(metrics).await?;
    let mut lines = metrics.lines().filter_map(|line| line.rsplit_once(' '));
    Ok(lines.find(|(found, _)| *found == name).and_then(|(_, count)| count.parse().ok()))
}
