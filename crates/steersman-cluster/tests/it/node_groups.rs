//! Simulated nodes of several kinds, as a file lists them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use steersman_cluster::{Cluster, NodeGroup};
use tokio::time::{interval, timeout};

use crate::PATIENCE;

const GROUPS: &str = "
- count: 3
  prefix: plain-
  capacity: {cpu: 2}
  zones: [a, b]
  usage: {cpu: 50%}
- prefix: card-
  capacity: {example.com/card: 4, cpu: 1, pods: 300}
  claims: {cpu: 16}
  labels: {cards: 'yes'}
  taints: [{key: cards, effect: NoSchedule}]
- prefix: flaky-
  taints: [{key: flaky, effect: NoSchedule}]
  failures: [{lostAt: 5m, backAt: 10m, every: 20m}]
";

async fn start() -> Cluster {
    let groups = NodeGroup::parse(GROUPS).unwrap();
    Cluster::builder().nodes(1).node_groups(groups).start().await.unwrap()
}

/// The nodes, once they are as they should be.
pub(crate) async fn nodes(cluster: &Cluster, are: impl Fn(&[Node]) -> bool) -> Vec<Node> {
    let nodes: Api<Node> = Api::all(cluster.client());
    let mut tick = interval(Duration::from_secs(1));
    let found = async {
        loop {
            let found = nodes.list(&ListParams::default()).await.unwrap().items;
            if are(&found) {
                return found;
            }
            tick.tick().await;
        }
    };
    timeout(60 * PATIENCE, found).await.expect("the nodes become so")
}

pub(crate) fn is_ready(nodes: &[Node], name: &str) -> Option<bool> {
    let node = nodes.iter().find(|node| node.metadata.name.as_deref() == Some(name))?;
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(ready.status == "True")
}

fn named<'a>(nodes: &'a [Node], name: &str) -> &'a Node {
    let is_it = |node: &&Node| node.metadata.name.as_deref() == Some(name);
    nodes.iter().find(is_it).unwrap()
}

async fn create(cluster: &Cluster, name: &str, spec: &Value) -> Pod {
    let mut pod = json!({"metadata": {"name": name}, "spec": spec});
    pod["spec"]["containers"][0]["name"] = "main".into();
    pod["spec"]["containers"][0]["image"] = "nginx".into();
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
}

/// A Pod, once it is as it should be.
pub(crate) async fn pod(cluster: &Cluster, name: &str, is: impl Fn(&Pod) -> bool) -> Pod {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let mut tick = interval(Duration::from_millis(100));
    let found = async {
        loop {
            let found = pods.get(name).await.unwrap();
            if is(&found) {
                return found;
            }
            tick.tick().await;
        }
    };
    timeout(PATIENCE, found).await.expect("the Pod becomes so")
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn nodes_have_what_their_group_says() {
    let cluster = start().await;
    let found = nodes(&cluster, |nodes| nodes.len() == 6).await;
    let zone = |name: &str| {
        let labels = named(&found, name).metadata.labels.as_ref().unwrap();
        labels.get("topology.kubernetes.io/zone").cloned()
    };
    assert_eq!(["plain-0", "plain-1", "plain-2"].map(zone).map(Option::unwrap), ["a", "b", "a"]);
    assert_eq!(zone("node-0"), None);
    let card = named(&found, "card-0");
    assert_eq!(card.metadata.labels.as_ref().unwrap()["cards"], "yes");
    let allocatable = card.status.as_ref().unwrap().allocatable.as_ref().unwrap();
    assert_eq!((&*allocatable["example.com/card"].0, &*allocatable["cpu"].0), ("4", "16"));
    let mut ranges: Vec<_> =
        found.iter().map(|node| node.spec.as_ref().unwrap().pod_cidr.clone().unwrap()).collect();
    ranges.sort();
    ranges.dedup();
    assert_eq!(ranges.len(), 6, "blocks of Pods do not overlap");
    assert!(ranges.iter().all(|range| range.ends_with("/23")), "{ranges:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_lies_is_chosen_and_refuses() {
    let cluster = start().await;
    let spec = |cpu: &str| {
        let amounts = json!({"cpu": cpu, "example.com/card": "1"});
        let resources = json!({"requests": amounts, "limits": {"example.com/card": "1"}});
        json!({"containers": [{"resources": resources}],
               "tolerations": [{"key": "cards", "operator": "Exists"}]})
    };
    create(&cluster, "small", &spec("500m")).await;
    pod(&cluster, "small", |pod| phase(pod) == "Running").await;
    create(&cluster, "large", &spec("8")).await;
    let large = pod(&cluster, "large", |pod| phase(pod) == "Failed").await;
    let status = large.status.unwrap();
    assert_eq!(status.reason.as_deref(), Some("OutOfcpu"));
    let why = "Pod was rejected: Node didn't have enough resource: cpu, requested: 8000, used: 500, \
               capacity: 1000";
    assert_eq!(status.message.as_deref(), Some(why));
}

#[tokio::test(start_paused = true)]
async fn what_runs_on_a_group_uses_what_its_profile_says() {
    let cluster = start().await;
    let spec = json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}],
                      "nodeSelector": {"topology.kubernetes.io/zone": "b"}});
    create(&cluster, "web", &spec).await;
    pod(&cluster, "web", |pod| phase(pod) == "Running").await;
    let path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web";
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let metrics: Value = cluster.client().request(request).await.unwrap();
    assert_eq!(metrics["containers"][0]["usage"]["cpu"], "500m");
    assert_eq!(metrics["containers"][0]["usage"]["memory"], "8Mi");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_flaps_is_lost_and_comes_back_again_and_again() {
    let cluster = start().await;
    nodes(&cluster, |nodes| is_ready(nodes, "flaky-0") == Some(true)).await;
    for _ in 0..2 {
        let lost = nodes(&cluster, |nodes| is_ready(nodes, "flaky-0") == Some(false)).await;
        assert_eq!(is_ready(&lost, "plain-0"), Some(true));
        nodes(&cluster, |nodes| is_ready(nodes, "flaky-0") == Some(true)).await;
    }
}
