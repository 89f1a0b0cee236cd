//! `TaintNodesByCondition` and `PodTopologyLabels`.

use serde_json::{Value, json};

use super::{NODES, PODS, pod_with, without};
use crate::api::{Api, pod};

const TAINT: &str = "node.kubernetes.io/not-ready";

#[tokio::test(start_paused = true)]
async fn a_new_node_is_tainted_until_somebody_finds_it_ready() {
    let api = Api::start().await;
    let not_ready = json!({"key": TAINT, "effect": "NoSchedule"});
    let created = api.post(NODES, &json!({"metadata": {"name": "a"}})).await.ok();
    assert_eq!(created["spec"]["taints"], json!([not_ready]));
    let own = json!({"key": TAINT, "effect": "NoExecute"});
    let node = json!({"metadata": {"name": "b"}, "spec": {"taints": [own]}});
    let created = api.post(NODES, &node).await.ok();
    assert_eq!(created["spec"]["taints"], json!([own, not_ready]));
    let node = json!({"metadata": {"name": "c"}, "spec": {"taints": [not_ready]}});
    let created = api.post(NODES, &node).await.ok();
    assert_eq!(created["spec"]["taints"], json!([not_ready]));
    let ready = json!({"spec": {"taints": null}});
    let updated = api.merge(&format!("{NODES}/a"), &ready).await.ok();
    assert!(updated["spec"].get("taints").is_none(), "{updated}");
    let api = without(&["TaintNodesByCondition"]).await;
    let created = api.post(NODES, &json!({"metadata": {"name": "a"}})).await.ok();
    assert!(created["spec"].get("taints").is_none(), "{created}");
}

async fn nodes(api: &Api) {
    let labels = json!({
        "topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1", "disk": "fast",
    });
    api.post(NODES, &json!({"metadata": {"name": "here", "labels": labels}})).await.ok();
    api.post(NODES, &json!({"metadata": {"name": "nowhere"}})).await.ok();
}

async fn bound(api: &Api, name: &str, node: &str) -> Value {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"kind": "Node", "name": node},
    });
    api.post(&format!("{PODS}/{name}/binding"), &binding).await.ok();
    api.get(&format!("{PODS}/{name}")).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_carries_the_labels_of_its_zone_and_region() {
    let api = Api::start().await;
    nodes(&api).await;
    let topology =
        json!({"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"});
    let created = api.post(PODS, &pod_with("a", &json!({"nodeName": "here"}))).await.ok();
    assert_eq!(created["metadata"]["labels"], topology);
    let mut labelled = pod("b");
    labelled["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": "z9", "app": "b"});
    api.post(PODS, &labelled).await.ok();
    let pod_b = bound(&api, "b", "here").await;
    let mut all = topology.clone();
    all["app"] = "b".into();
    assert_eq!(pod_b["metadata"]["labels"], all);
    for (name, node) in [("c", "nowhere"), ("d", "gone")] {
        api.post(PODS, &pod(name)).await.ok();
        assert!(bound(&api, name, node).await["metadata"].get("labels").is_none(), "{node}");
    }
    let api = without(&["PodTopologyLabels"]).await;
    nodes(&api).await;
    api.post(PODS, &pod("a")).await.ok();
    assert!(bound(&api, "a", "here").await["metadata"].get("labels").is_none());
}
