//! Controllers that are restarted after each of their writes come to the same end.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{Controller, Result};
use steersman_testkit::{Cluster, Restarts};

use crate::objects::{all, all_become, deployment, image, is_ready, object};

/// The built-in controller of this name, as a new one.
fn built_in(name: &'static str) -> impl Fn() -> Controller {
    move || {
        let mut all = steersman_controllers::all().into_iter();
        all.find(|controller| controller.name() == name).expect("it is built in")
    }
}

fn workload(kind: &str, spec: &Value) -> Value {
    let mut workload = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        workload["spec"][key] = value.clone();
    }
    workload
}

fn new_image() -> Patch<Value> {
    let containers = json!([{"name": "main", "image": "nginx:2"}]);
    Patch::Merge(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
}

/// Waits until there are so many Pods, ready, and of this image.
async fn run_well(cluster: &Cluster, count: usize, wanted: &str) -> Result<()> {
    let well = |pods: &[Pod]| {
        pods.len() == count && pods.iter().all(|pod| is_ready(pod) && image(pod) == wanted)
    };
    all_become(cluster, well).await.map(drop)
}

#[test]
fn a_deployment_rolls_out_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("deployment-controller")).events(10).check(async |cluster| {
        cluster.client().create(&deployment("web", 2, "nginx:1")).await?;
        run_well(cluster, 2, "nginx:1").await?;
        cluster.client().patch::<Deployment, _>("web", &new_image()).await?;
        run_well(cluster, 2, "nginx:2").await
    });
}

#[test]
fn a_replica_set_creates_no_pod_too_many_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("replicaset-controller")).events(10).check(async |cluster| {
        let set: ReplicaSet = object(workload("ReplicaSet", &json!({"replicas": 5})));
        cluster.client().create(&set).await?;
        run_well(cluster, 5, "nginx:1").await?;
        let victim = all::<Pod>(cluster).await?.remove(0).metadata.name.unwrap_or_default();
        cluster.client().delete::<Pod>(victim.as_str(), &DeleteParams::default()).await?;
        cluster.gone::<Pod>(victim.as_str()).await?;
        run_well(cluster, 5, "nginx:1").await?;
        let fewer = Patch::Merge(json!({"spec": {"replicas": 2}}));
        cluster.client().patch::<ReplicaSet, _>("web", &fewer).await?;
        run_well(cluster, 2, "nginx:1").await
    });
}

#[test]
fn a_stateful_set_updates_its_pods_once_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("statefulset-controller")).events(10).check(async |cluster| {
        let claims = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
        let policy = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
        let spec = json!({"replicas": 2, "serviceName": "web", "volumeClaimTemplates": claims,
                          "persistentVolumeClaimRetentionPolicy": policy});
        let set: StatefulSet = object(workload("StatefulSet", &spec));
        cluster.client().create(&set).await?;
        run_well(cluster, 2, "nginx:1").await?;
        cluster.client().patch::<StatefulSet, _>("web", &new_image()).await?;
        run_well(cluster, 2, "nginx:2").await?;
        let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
        cluster.client().patch::<StatefulSet, _>("web", &fewer).await?;
        run_well(cluster, 1, "nginx:2").await
    });
}

#[test]
fn a_daemon_set_updates_its_pods_once_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("daemonset-controller")).events(10).check(async |cluster| {
        let set: DaemonSet = object(workload("DaemonSet", &json!({})));
        cluster.client().create(&set).await?;
        run_well(cluster, 3, "nginx:1").await?;
        cluster.client().patch::<DaemonSet, _>("web", &new_image()).await?;
        run_well(cluster, 3, "nginx:2").await
    });
}
