//! DaemonSets: one Pod on every node that should have one.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::events::told;
use crate::objects::{all, all_become, image, is_ready, object};

fn set(spec: &Value) -> DaemonSet {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "log", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "log"}},
            "template": {
                "metadata": {"labels": {"app": "log"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        set["spec"][key] = value.clone();
    }
    object(set)
}

fn settled(set: &DaemonSet, nodes: i32) -> bool {
    let Some(status) = &set.status else { return false };
    let counts =
        [status.number_available.unwrap_or(0), status.updated_number_scheduled.unwrap_or(0)];
    counts.iter().all(|count| *count == nodes)
        && [status.desired_number_scheduled, status.current_number_scheduled, status.number_ready]
            == [nodes; 3]
        && status.observed_generation == set.metadata.generation
}

fn on(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

fn new_image(image: &str) -> Patch<Value> {
    let containers = json!([{"name": "main", "image": image}]);
    Patch::Merge(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
}

#[steersman::test]
async fn every_node_has_one_pod_and_so_has_a_node_that_comes_later(cluster: Cluster) -> Result<()> {
    cluster.client().create(&set(&json!({}))).await?;
    cluster.eventually("log", |set: &DaemonSet| settled(set, 3)).await?;
    let pods: Vec<Pod> = all(&cluster).await?;
    let mut nodes: Vec<&str> = pods.iter().map(on).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node-0", "node-1", "node-2"]);
    let node: Node = object(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}},
    }));
    cluster.client().create(&node).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 4).await?;
    let mut told = told(&cluster, "DaemonSet").await?;
    told.retain(|line| {
        line.starts_with("daemonset-controller Normal SuccessfulCreate: Created pod: log-")
    });
    assert_eq!(told.len(), 4);
    Ok(())
}

#[steersman::test]
async fn taints_and_labels_decide_who_has_a_pod(cluster: Cluster) -> Result<()> {
    let template = json!({
        "metadata": {"labels": {"app": "log"}},
        "spec": {"containers": [{"name": "main", "image": "nginx"}], "nodeSelector": {"log": "yes"}},
    });
    cluster.client().create(&set(&json!({"template": template}))).await?;
    cluster.eventually("node-1", |_: &Node| true).await?;
    cluster.advance(Duration::from_secs(5)).await;
    assert!(all::<Pod>(&cluster).await?.is_empty());
    let label = |value: Value| Patch::Merge(json!({"metadata": {"labels": {"log": value}}}));
    for node in ["node-0", "node-1"] {
        cluster.client().patch::<Node, _>(node, &label(json!("yes"))).await?;
    }
    cluster.eventually("log", |set: &DaemonSet| settled(set, 2)).await?;
    // What keeps new Pods away lets this one stay, and it counts as misscheduled.
    let taint =
        |effect: &str| Patch::Merge(json!({"spec": {"taints": [{"key": "x", "effect": effect}]}}));
    cluster.client().patch::<Node, _>("node-0", &taint("NoSchedule")).await?;
    let misscheduled = |set: &DaemonSet| {
        let status = set.status.as_ref().unwrap();
        status.number_misscheduled == 1 && status.desired_number_scheduled == 1
    };
    cluster.eventually("log", misscheduled).await?;
    cluster.client().patch::<Node, _>("node-0", &taint("NoExecute")).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 1 && on(&pods[0]) == "node-1").await?;
    cluster.client().patch::<Node, _>("node-1", &label(json!(null))).await?;
    all_become(&cluster, |pods: &[Pod]| pods.is_empty()).await?;
    Ok(())
}

#[steersman::test]
async fn a_cordoned_node_keeps_and_gets_its_daemon(cluster: Cluster) -> Result<()> {
    cluster.eventually("node-2", |_: &Node| true).await?;
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    cluster.client().patch::<Node, _>("node-2", &cordon).await?;
    cluster.client().create(&set(&json!({}))).await?;
    cluster.eventually("log", |set: &DaemonSet| settled(set, 3)).await
}

#[steersman::test]
async fn a_rolling_update_replaces_one_pod_after_the_other(cluster: Cluster) -> Result<()> {
    cluster.client().create(&set(&json!({"minReadySeconds": 5}))).await?;
    cluster.eventually("log", |set: &DaemonSet| settled(set, 3)).await?;
    cluster.client().patch::<DaemonSet, _>("log", &new_image("nginx:2")).await?;
    let mut fewest = 3;
    loop {
        cluster.advance(Duration::from_millis(500)).await;
        let pods: Vec<Pod> = all(&cluster).await?;
        fewest = fewest.min(pods.iter().filter(|pod| is_ready(pod)).count());
        let set: DaemonSet = cluster.client().get("log").await?.unwrap();
        if settled(&set, 3) && pods.iter().all(|pod| image(pod) == "nginx:2") {
            break;
        }
    }
    assert!(fewest >= 2, "at most one node was without: {fewest}");
    let revisions: Vec<ControllerRevision> = all(&cluster).await?;
    let mut numbers: Vec<i64> = revisions.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    // `kubectl rollout undo` writes the old template again.
    cluster.client().patch::<DaemonSet, _>("log", &new_image("nginx:1")).await?;
    all_become(&cluster, |pods: &[Pod]| pods.iter().all(|pod| image(pod) == "nginx:1")).await?;
    cluster.eventually("log", |set: &DaemonSet| settled(set, 3)).await?;
    let revisions: Vec<ControllerRevision> = all(&cluster).await?;
    let mut numbers: Vec<i64> = revisions.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3], "the first has a new number");
    Ok(())
}

#[steersman::test]
async fn with_a_surge_no_node_is_ever_without(cluster: Cluster) -> Result<()> {
    let rolling = json!({"maxSurge": 1, "maxUnavailable": 0});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    cluster.client().create(&set(&json!({"updateStrategy": strategy}))).await?;
    cluster.eventually("log", |set: &DaemonSet| settled(set, 3)).await?;
    cluster.client().patch::<DaemonSet, _>("log", &new_image("nginx:2")).await?;
    let updated = |pods: &[Pod]| {
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(ready >= 3 && pods.len() <= 5, "{ready} of {}", pods.len());
        pods.len() == 3 && pods.iter().all(|pod| image(pod) == "nginx:2")
    };
    all_become(&cluster, updated).await?;
    Ok(())
}

#[steersman::test]
async fn with_on_delete_a_pod_is_updated_when_somebody_deletes_it(cluster: Cluster) -> Result<()> {
    cluster.client().create(&set(&json!({"updateStrategy": {"type": "OnDelete"}}))).await?;
    cluster.eventually("log", |set: &DaemonSet| settled(set, 3)).await?;
    cluster.client().patch::<DaemonSet, _>("log", &new_image("nginx:2")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let pods: Vec<Pod> = all(&cluster).await?;
    assert!(pods.iter().all(|pod| image(pod) == "nginx:1"));
    let name = pods[0].metadata.name.as_deref().unwrap();
    cluster.client().delete::<Pod>(name, &DeleteParams::default()).await?;
    let one_is_new = |pods: &[Pod]| {
        pods.len() == 3 && pods.iter().filter(|pod| image(pod) == "nginx:2").count() == 1
    };
    all_become(&cluster, one_is_new).await?;
    Ok(())
}

#[steersman::test]
async fn a_failed_pod_is_replaced_and_people_are_told(cluster: Cluster) -> Result<()> {
    cluster.client().create(&set(&json!({}))).await?;
    cluster.eventually("log", |set: &DaemonSet| settled(set, 3)).await?;
    let victim = all::<Pod>(&cluster).await?.remove(0);
    let name = victim.metadata.name.clone().unwrap();
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    cluster.client().patch_status::<Pod, _>(name.as_str(), &failed).await?;
    let replaced = |pods: &[Pod]| {
        pods.len() == 3
            && pods.iter().all(|pod| is_ready(pod) && pod.metadata.uid != victim.metadata.uid)
    };
    all_become(&cluster, replaced).await?;
    let node = on(&victim);
    let expected = format!(
        "daemonset-controller Warning FailedDaemonPod: Found failed daemon pod default/{name} on \
         node {node}, will try to kill it"
    );
    assert!(told(&cluster, "DaemonSet").await?.contains(&expected));
    Ok(())
}

#[steersman::test]
async fn deleting_a_daemon_set_removes_its_pods_and_revisions(cluster: Cluster) -> Result<()> {
    cluster.client().create(&set(&json!({}))).await?;
    cluster.eventually("log", |set: &DaemonSet| settled(set, 3)).await?;
    cluster.client().delete::<DaemonSet>("log", &DeleteParams::foreground()).await?;
    cluster.gone::<DaemonSet>("log").await?;
    all_become(&cluster, |pods: &[Pod]| pods.is_empty()).await?;
    all_become(&cluster, |revisions: &[ControllerRevision]| revisions.is_empty()).await?;
    Ok(())
}
