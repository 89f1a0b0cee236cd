//! Pods find nodes, and nodes run Pods.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::Result;
use steersman_testkit::Cluster;

use crate::objects::{all_become, is_ready, object, pod};

fn asking(name: &str, cpu: &str) -> Pod {
    let resources = json!({"requests": {"cpu": cpu}});
    pod(name, &json!({"containers": [{"name": "main", "image": "nginx", "resources": resources}]}))
}

fn unschedulable(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    condition.message.clone()
}

#[steersman::test]
async fn a_pod_that_fits_nowhere_is_scheduled_when_a_node_appears(cluster: Cluster) -> Result<()> {
    cluster.client().create(&asking("big", "64")).await?;
    let told = |pod: &Pod| {
        let message = "0/3 nodes are available: 3 Insufficient cpu.";
        unschedulable(pod).as_deref() == Some(message)
    };
    cluster.eventually("node-2", |_: &Node| true).await?;
    cluster.eventually("big", told).await?;
    let large: Node = object(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "large"},
        "status": {"allocatable": {"cpu": "128", "memory": "64Gi", "pods": "10"}},
    }));
    let created: Node = cluster.client().create(&large).await?;
    if created.status.is_none_or(|status| status.allocatable.is_none()) {
        let patch = Patch::Merge(json!({"status": large.status}));
        cluster.client().patch_status::<Node, _>("large", &patch).await?;
    }
    let bound = |pod: &Pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some("large");
    cluster.eventually("big", bound).await
}

#[steersman::test]
async fn of_pods_bound_beyond_what_a_node_can_run_the_last_fail(cluster: Cluster) -> Result<()> {
    cluster.eventually("node-0", |_: &Node| true).await?;
    for n in 0..112 {
        let here = json!({"nodeName": "node-0", "hostNetwork": n % 10 == 0});
        cluster.client().create(&pod(&format!("p{n}"), &here)).await?;
    }
    let rejected = |pod: &&Pod| {
        let status = pod.status.clone().unwrap_or_default();
        status.phase.as_deref() == Some("Failed") && status.reason.as_deref() == Some("OutOfpods")
    };
    all_become(&cluster, |pods: &[Pod]| {
        let running = pods.iter().filter(|pod| is_ready(pod)).count();
        running == 110 && pods.iter().filter(rejected).count() == 2
    })
    .await
    .map(drop)
}

#[steersman::test]
async fn a_pod_that_waits_for_room_gets_it_when_another_goes(cluster: Cluster) -> Result<()> {
    for name in ["a", "b", "c"] {
        cluster.client().create(&asking(name, "8")).await?;
        cluster.eventually(name, is_ready).await?;
    }
    cluster.client().create(&asking("waiting", "8")).await?;
    cluster.eventually("waiting", |pod: &Pod| unschedulable(pod).is_some()).await?;
    cluster.client().delete::<Pod>("b", &DeleteParams::default()).await?;
    cluster.eventually("waiting", is_ready).await
}

#[steersman::test]
async fn pods_spread_over_nodes_and_never_exceed_them(cluster: Cluster) -> Result<()> {
    for n in 0..30 {
        cluster.client().create(&asking(&format!("p{n}"), "1")).await?;
    }
    let pods: Vec<Pod> =
        all_become(&cluster, |pods: &[Pod]| pods.iter().filter(|pod| is_ready(pod)).count() == 24)
            .await?;
    for node in ["node-0", "node-1", "node-2"] {
        let on = |pod: &&Pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node);
        assert_eq!(pods.iter().filter(on).count(), 8, "{node}");
    }
    Ok(())
}

#[steersman::test]
async fn a_node_selector_is_followed(cluster: Cluster) -> Result<()> {
    let selector = json!({"nodeSelector": {"kubernetes.io/hostname": "node-1"}});
    cluster.client().create(&pod("picky", &selector)).await?;
    cluster.eventually("picky", is_ready).await?;
    let picky: Pod = cluster.client().get("picky").await?.unwrap();
    assert_eq!(picky.spec.unwrap().node_name.as_deref(), Some("node-1"));
    Ok(())
}

#[steersman::test]
async fn nodes_are_ready_and_renew_their_leases(cluster: Cluster) -> Result<()> {
    let ready = |node: &Node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    };
    cluster.eventually("node-0", ready).await?;
    cluster.eventually("kube-node-lease/node-0", |_: &Lease| true).await?;
    let renewed = |lease: &Lease| lease.spec.as_ref().unwrap().renew_time.clone().unwrap();
    let first: Lease = cluster.client().get("kube-node-lease/node-0").await?.unwrap();
    cluster.advance(Duration::from_secs(25)).await;
    let second: Lease = cluster.client().get("kube-node-lease/node-0").await?.unwrap();
    assert_eq!(renewed(&second).0.duration_since(renewed(&first).0).as_secs(), 20);
    Ok(())
}
