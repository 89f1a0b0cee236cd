//! Nodes that are lost and come back, what becomes of their Pods, and Pods that nobody else removes.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::Result;
use steersman_controllers::NodeCidrs;
use steersman_testkit::{Cluster, Restarts};

use crate::events::told;
use crate::objects::{all, all_become, counted, deployment, is_ready, object, pod};
use crate::restarts::built_in;

const MINUTE: Duration = Duration::from_secs(60);

fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

fn name_of(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

fn uids(pods: &[Pod]) -> Vec<Option<String>> {
    pods.iter().map(|pod| pod.metadata.uid.clone()).collect()
}

fn condition(pod: &Pod, type_: &str) -> Option<(String, String)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((found.status.clone(), found.reason.clone().unwrap_or_default()))
}

/// The Node of that name.
async fn node(cluster: &Cluster, name: &str) -> Result<Node> {
    Ok(cluster.client().get(name).await?.expect("the Node is there"))
}

/// The condition `Ready` of a Node, and why.
async fn readiness(cluster: &Cluster, name: &str) -> Result<(String, String)> {
    let conditions = node(cluster, name).await?.status.and_then(|status| status.conditions);
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready").expect("it has said so");
    Ok((ready.status, ready.message.unwrap_or_default()))
}

/// The taints of a Node, without what all their names begin with.
async fn taints(cluster: &Cluster, name: &str) -> Result<Vec<String>> {
    let taints = node(cluster, name).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
    let short = |key: &str| key.trim_start_matches("node.kubernetes.io/").to_owned();
    Ok(taints.iter().map(|it| format!("{}:{}", short(&it.key), it.effect)).collect())
}

/// Three Pods of a Deployment that run, and the node of the first.
async fn three_pods(cluster: &Cluster) -> Result<(Vec<Pod>, String)> {
    cluster.client().create(&deployment("web", 3, "nginx")).await?;
    let well = |pods: &[Pod]| pods.len() == 3 && pods.iter().all(is_ready);
    let pods = all_become(cluster, well).await?;
    let node = node_of(&pods[0]);
    Ok((pods, node))
}

#[steersman::test]
async fn pods_of_a_lost_node_are_evicted_after_five_minutes_and_replaced_elsewhere(
    cluster: Cluster,
) -> Result<()> {
    let (before, lost) = three_pods(&cluster).await?;
    assert_eq!(taints(&cluster, &lost).await?, [] as [String; 0], "it is ready");
    cluster.nodes().named(&lost).lost();
    cluster.advance(Duration::from_secs(49)).await;
    assert_eq!(readiness(&cluster, &lost).await?.0, "True");
    cluster.advance(Duration::from_secs(10)).await;
    let silent = ("Unknown".to_owned(), "Kubelet stopped posting node status.".to_owned());
    assert_eq!(readiness(&cluster, &lost).await?, silent);
    let unreachable = ["unreachable:NoSchedule", "unreachable:NoExecute"];
    assert_eq!(taints(&cluster, &lost).await?, unreachable);
    let there = |pod: &&Pod| node_of(pod) == lost;
    for pod in all::<Pod>(&cluster).await?.iter().filter(there) {
        assert!(!is_ready(pod));
        assert_eq!(pod.metadata.deletion_timestamp, None);
    }
    cluster.advance(4 * MINUTE).await;
    assert_eq!(uids(&all(&cluster).await?), uids(&before), "they are tolerated for five minutes");
    cluster.advance(MINUTE).await;
    let (gone, left): (Vec<Pod>, Vec<Pod>) =
        all::<Pod>(&cluster).await?.into_iter().partition(|pod| there(&pod));
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(is_ready));
    for pod in &gone {
        assert!(pod.metadata.deletion_timestamp.is_some());
        let target = ("True".to_owned(), "DeletionByTaintManager".to_owned());
        assert_eq!(condition(pod, "DisruptionTarget"), Some(target));
        let events = told(&cluster, "Pod").await?;
        let marked = format!(
            "taint-eviction-controller Normal TaintManagerEviction: Marking for deletion Pod \
             default/{}",
            name_of(pod)
        );
        assert!(events.contains(&marked), "{events:#?}");
        let warned = "node-controller Warning NodeNotReady: Node is not ready".to_owned();
        assert!(events.contains(&warned), "{events:#?}");
    }
    let deleted = counted(&cluster, "taint_eviction_controller_pod_deletions_total").await?;
    assert_eq!(deleted, Some(f64::from(u32::try_from(gone.len())?)));
    let events = told(&cluster, "Node").await?;
    for what in [
        format!("RegisteredNode: Node {lost} event: Registered Node {lost} in Controller"),
        format!("NodeNotReady: Node {lost} status is now: NodeNotReady"),
    ] {
        assert!(events.contains(&format!("node-controller Normal {what}")), "{events:#?}");
    }
    cluster.nodes().named(&lost).back();
    for pod in &gone {
        cluster.gone::<Pod>(name_of(pod).as_str()).await?;
    }
    assert_eq!(readiness(&cluster, &lost).await?.0, "True");
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(taints(&cluster, &lost).await?, [] as [String; 0]);
    Ok(())
}

#[steersman::test]
async fn pods_of_a_node_that_is_back_in_time_stay(cluster: Cluster) -> Result<()> {
    let (before, lost) = three_pods(&cluster).await?;
    cluster.nodes().named(&lost).lost();
    cluster.advance(3 * MINUTE).await;
    let there: Vec<Pod> = before.iter().filter(|pod| node_of(pod) == lost).cloned().collect();
    cluster.nodes().named(&lost).back();
    let well = |pods: &[Pod]| pods.iter().all(is_ready);
    all_become(&cluster, well).await?;
    let events = told(&cluster, "Pod").await?;
    for pod in &there {
        let cancelled = format!(
            "taint-eviction-controller Normal TaintManagerEviction: Cancelling deletion of Pod \
             default/{}",
            name_of(pod)
        );
        assert!(events.contains(&cancelled), "{events:#?}");
    }
    assert_eq!(taints(&cluster, &lost).await?, [] as [String; 0]);
    cluster.advance(10 * MINUTE).await;
    assert_eq!(uids(&all(&cluster).await?), uids(&before));
    Ok(())
}

/// When each of these Nodes was given up, in seconds; none for those that are not.
async fn given_up(cluster: &Cluster, names: &[&str]) -> Result<Vec<Option<i64>>> {
    let mut times = Vec::new();
    for name in names {
        let mut taints =
            node(cluster, name).await?.spec.and_then(|spec| spec.taints).into_iter().flatten();
        let evicts = taints.find(|taint| taint.effect == "NoExecute");
        times.push(evicts.and_then(|taint| Some(taint.time_added?.0.as_second())));
    }
    Ok(times)
}

#[steersman::test(nodes = 6)]
async fn zones_that_fail_are_given_up_node_by_node_and_none_when_all_have_failed(
    cluster: Cluster,
) -> Result<()> {
    let zones = [["node-0", "node-1"], ["node-2", "node-3"], ["node-4", "node-5"]];
    for (zone, nodes) in ["a", "b", "c"].into_iter().zip(zones) {
        for node in nodes {
            cluster.eventually(node, |_: &Node| true).await?;
            let label = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
            cluster.client().patch::<Node, _>(node, &Patch::Merge(label)).await?;
        }
    }
    cluster.client().create(&deployment("web", 6, "nginx")).await?;
    let well = |pods: &[Pod]| pods.len() == 6 && pods.iter().all(is_ready);
    let before = all_become(&cluster, well).await?;
    for nodes in &zones[..2] {
        nodes.iter().for_each(|node| cluster.nodes().named(*node).lost());
        cluster.advance(Duration::from_secs(59)).await;
        let mut first = given_up(&cluster, nodes).await?;
        first.sort();
        assert_eq!(first[0], None, "one after the other");
        cluster.advance(Duration::from_secs(10)).await;
        let mut both = given_up(&cluster, nodes).await?;
        both.sort();
        assert_eq!(both[0], first[1]);
        assert_eq!(both[1].unwrap() - both[0].unwrap(), 10, "a tenth of a node per second");
    }
    let zone = "node_collector_evictions_total{zone=\":\\0:a\"}".replace("\\0", "\0");
    assert_eq!(counted(&cluster, &zone).await?, Some(2.0));
    zones[2].iter().for_each(|node| cluster.nodes().named(*node).lost());
    cluster.advance(MINUTE).await;
    let all_nodes = zones.concat();
    assert_eq!(given_up(&cluster, &all_nodes).await?, [None; 6], "where could they go?");
    cluster.advance(20 * MINUTE).await;
    assert_eq!(given_up(&cluster, &all_nodes).await?, [None; 6]);
    assert_eq!(uids(&all(&cluster).await?), uids(&before));
    cluster.nodes().named("node-5").back();
    cluster.advance(MINUTE).await;
    let times = given_up(&cluster, &all_nodes).await?;
    assert_eq!(times.iter().flatten().count(), 5, "{times:?}");
    Ok(())
}

#[steersman::test]
async fn what_a_node_says_keeps_pods_away_from_it(cluster: Cluster) -> Result<()> {
    for node in ["node-0", "node-1", "node-2"] {
        cluster.eventually(node, |_: &Node| true).await?;
    }
    let ranges = ["10.244.0.0/16", "fd00:10:244::/56"].map(|range| range.parse().unwrap());
    cluster.run(steersman_controllers::node_ipam(&ranges.map(NodeCidrs::of)));
    let bare: Node = object(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "bare", "labels": {"kubernetes.io/arch": "arm64"}},
    }));
    let created = cluster.client().create(&bare).await?;
    let taint = &created.spec.unwrap().taints.unwrap()[0];
    assert_eq!(taint.key, "node.kubernetes.io/not-ready", "until it is known how it is");
    cluster.settle().await;
    assert_eq!(taints(&cluster, "bare").await?, [] as [String; 0]);
    let pressure = json!({"status": {"conditions": [{"type": "MemoryPressure", "status": "True"},
                                                   {"type": "Ready", "status": "False"}]}});
    cluster.client().patch_status::<Node, _>("bare", &Patch::Merge(pressure)).await?;
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    cluster.client().patch::<Node, _>("bare", &cordon).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let mut found = taints(&cluster, "bare").await?;
    found.sort();
    let expected = [
        "memory-pressure:NoSchedule",
        "not-ready:NoExecute",
        "not-ready:NoSchedule",
        "unschedulable:NoSchedule",
    ];
    assert_eq!(found, expected);
    cluster.advance(MINUTE).await;
    let node: Node = cluster.client().get("bare").await?.unwrap();
    let spec = node.spec.unwrap();
    let first = "10.244.3.0/24"; // the simulated nodes have those before
    assert_eq!(spec.pod_cidr.as_deref(), Some(first));
    assert_eq!(spec.pod_cidrs.unwrap(), [first, "fd00:10:244::/64"], "one of each family");
    let labels = node.metadata.labels.unwrap();
    assert_eq!(labels["beta.kubernetes.io/arch"], "arm64");
    assert_eq!(node.metadata.annotations.unwrap()["node.alpha.kubernetes.io/ttl"], "0");
    let conditions = node.status.unwrap().conditions.unwrap();
    let found: Vec<_> = conditions.iter().map(|it| (&*it.type_, it.reason.as_deref())).collect();
    let (stopped, never) = (Some("NodeStatusUnknown"), Some("NodeStatusNeverUpdated"));
    let expected = [
        ("MemoryPressure", stopped),
        ("Ready", stopped),
        ("DiskPressure", never),
        ("PIDPressure", never),
    ];
    assert_eq!(found, expected, "it never said anything itself");
    let mut found = taints(&cluster, "bare").await?;
    found.sort();
    let expected = ["unreachable:NoExecute", "unreachable:NoSchedule", "unschedulable:NoSchedule"];
    assert_eq!(found, expected);
    Ok(())
}

#[steersman::test]
async fn pods_of_a_node_that_was_not_ready_stay_as_it_left_them(cluster: Cluster) -> Result<()> {
    let bare = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}});
    cluster.client().create::<Node>(&object(bare)).await?;
    cluster.client().create(&pod("web", &json!({"nodeName": "bare"}))).await?;
    let says = |ready: &str| {
        Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}}))
    };
    cluster.client().patch_status::<Pod, _>("web", &says("True")).await?;
    for (node, pod_is_ready) in [("False", true), ("True", false)] {
        cluster.client().patch_status::<Node, _>("bare", &says(node)).await?;
        cluster.advance(MINUTE).await;
        assert_eq!(readiness(&cluster, "bare").await?.0, "Unknown");
        let web: Pod = cluster.client().get("web").await?.unwrap();
        assert_eq!(is_ready(&web), pod_is_ready, "of a node that said {node}");
    }
    Ok(())
}

fn finalized() -> Value {
    json!({"metadata": {"finalizers": ["example.com/keep"]}})
}

#[steersman::test(termination = Duration::from_secs(3600))]
async fn pods_that_nobody_else_removes_are_removed(cluster: Cluster) -> Result<()> {
    for (name, node) in [("a", "node-0"), ("b", "node-1")] {
        cluster.eventually(node, |_: &Node| true).await?;
        let long = json!({"nodeName": node, "terminationGracePeriodSeconds": 3600});
        cluster.client().create(&pod(name, &long)).await?;
        cluster.eventually(name, is_ready).await?;
    }
    // Nobody will answer for it.
    let waits = json!({"schedulerName": "nobody"});
    cluster.client().create(&pod("c", &waits)).await?;
    cluster.client().patch::<Pod, _>("c", &Patch::Merge(finalized())).await?;
    cluster.client().delete::<Pod>("c", &DeleteParams::default()).await?;
    cluster.client().patch::<Pod, _>("a", &Patch::Merge(finalized())).await?;
    cluster.client().delete::<Node>("node-0", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(39)).await;
    let a: Pod = cluster.client().get("a").await?.unwrap();
    assert_eq!(a.metadata.deletion_timestamp, None, "the node may come again");
    let failed = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Failed") && pod.metadata.deletion_timestamp.is_some()
    };
    let c: Pod = cluster.client().get("c").await?.unwrap();
    assert!(failed(&c), "{c:?}");
    cluster.eventually("a", failed).await?;
    let a: Pod = cluster.client().get("a").await?.unwrap();
    let target = ("True".to_owned(), "DeletionByPodGC".to_owned());
    assert_eq!(condition(&a, "DisruptionTarget"), Some(target));
    // A node that somebody has said to be out of service does not hold up its Pods.
    cluster.nodes().named("node-1").lost();
    cluster.advance(MINUTE).await;
    cluster.client().delete::<Pod>("b", &DeleteParams::default()).await?;
    cluster.advance(MINUTE).await;
    assert!(
        cluster.client().get::<Pod>("b").await?.is_some(),
        "its node has not said that it ended"
    );
    let node: Node = cluster.client().get("node-1").await?.unwrap();
    let mut taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    taints
        .push(object(json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown",
                              "effect": "NoExecute"})));
    let shut_down = Patch::Merge(json!({"spec": {"taints": taints}}));
    cluster.client().patch::<Node, _>("node-1", &shut_down).await?;
    cluster.gone::<Pod>("b").await?;
    for (reason, expected) in [("orphaned", 1.0), ("out-of-service", 1.0), ("unscheduled", 1.0)] {
        let name = "pod_gc_collector_force_delete_pods_total";
        let name = format!("{name}{{namespace=\"default\",reason=\"{reason}\"}}");
        assert_eq!(counted(&cluster, &name).await?, Some(expected), "{reason}");
    }
    Ok(())
}

/// Waits until a Node has so many taints, which takes a while.
async fn has_taints(cluster: &Cluster, name: &str, count: usize) -> Result<()> {
    for _ in 0..30 {
        if taints(cluster, name).await?.len() == count {
            return Ok(());
        }
        cluster.advance(Duration::from_secs(10)).await;
    }
    assert_eq!(taints(cluster, name).await?.len(), count);
    Ok(())
}

/// A node is lost, its Pods are replaced, and it is back.
async fn a_node_is_lost_for_a_while(cluster: &Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 2, "nginx")).await?;
    let two = |pods: &[Pod]| pods.len() == 2 && pods.iter().all(is_ready);
    let lost = node_of(&all_become(cluster, two).await?[0]);
    cluster.nodes().named(&lost).lost();
    let replaced =
        |pods: &[Pod]| pods.iter().filter(|pod| node_of(pod) != lost && is_ready(pod)).count() == 2;
    for _ in 0..20 {
        if replaced(&all(cluster).await?) {
            break;
        }
        cluster.advance(MINUTE).await;
    }
    cluster.nodes().named(&lost).back();
    all_become(cluster, two).await.map(drop)
}

#[test]
fn a_lost_node_is_given_up_whenever_its_controller_is_restarted() {
    let controller = built_in("node-lifecycle-controller");
    Restarts::of(controller).events(2).check(async |cluster| {
        cluster.eventually("node-1", |_: &Node| true).await?;
        cluster.client().create(&pod("web", &json!({"nodeName": "node-1"}))).await?;
        cluster.eventually("web", is_ready).await?;
        cluster.nodes().named("node-1").lost();
        has_taints(cluster, "node-1", 2).await?;
        cluster.eventually("web", |pod| !is_ready(pod)).await?;
        cluster.nodes().named("node-1").back();
        has_taints(cluster, "node-1", 0).await?;
        cluster.eventually("web", is_ready).await
    });
}

#[test]
fn pods_of_a_lost_node_are_replaced_once_whenever_what_evicts_them_is_restarted() {
    let controller = built_in("taint-eviction-controller");
    Restarts::of(controller).events(2).check(a_node_is_lost_for_a_while);
}

#[test]
fn orphans_are_removed_whenever_their_collector_is_restarted() {
    let controller = built_in("pod-garbage-collector-controller");
    Restarts::of(controller).events(2).check(async |cluster| {
        cluster.eventually("node-2", |_: &Node| true).await?;
        for name in ["a", "b"] {
            cluster.client().create(&pod(name, &json!({"nodeName": "node-2"}))).await?;
            cluster.eventually(name, is_ready).await?;
        }
        cluster.client().delete::<Node>("node-2", &DeleteParams::default()).await?;
        for name in ["a", "b"] {
            cluster.gone::<Pod>(name).await?;
        }
        Ok(())
    });
}
