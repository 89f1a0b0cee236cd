use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Patch;
use serde_json::json;
use steersman::{Manager, Result};
use steersman_examples::thrifty::{self, LIMIT, NAME, PRICE};
use steersman_testkit::Cluster;

async fn set_price(cluster: &Cluster, node: &str, price: i64) -> Result<()> {
    cluster.eventually(node, |_: &Node| true).await?;
    let annotations = json!({PRICE: price.to_string()});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    cluster.client().patch::<Node, _>(node, &patch).await.map(drop)
}

async fn create(cluster: &Cluster, name: &str, limit: i64) -> Result<()> {
    let pod: Pod = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {LIMIT: limit.to_string()}},
        "spec": {"schedulerName": NAME, "containers": [{"name": "main", "image": "nginx"}]},
    }))?;
    cluster.client().create(&pod).await.map(drop)
}

fn message(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|it| it.type_ == "PodScheduled")?;
    scheduled.message.as_deref()
}

fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

#[steersman::test]
async fn pods_go_to_the_cheapest_node_and_to_none_that_is_too_dear(cluster: Cluster) -> Result<()> {
    for (name, price) in [("node-0", 30), ("node-1", 10), ("node-2", 20)] {
        set_price(&cluster, name, price).await?;
    }
    let manager = Manager::new(cluster.client().kube().clone());
    let _running = thrifty::install(manager).expect("it is sound").start();
    create(&cluster, "cheap", 100).await?;
    cluster.eventually("cheap", |pod: &Pod| node(pod) == Some("node-1")).await?;
    create(&cluster, "poor", 5).await?;
    let told = "0/3 nodes are available: 3 node(s) cost more than the pod may. no new claims to \
                deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    cluster.eventually("poor", |pod: &Pod| message(pod) == Some(told)).await?;
    set_price(&cluster, "node-2", 4).await?;
    cluster.eventually("poor", |pod: &Pod| node(pod) == Some("node-2")).await
}

/// The lines of a text, however far they are indented.
fn lines(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// The guide promises that its snippets are compiled: those of *Scheduling* stand in the example.
#[test]
fn the_guide_shows_what_is_tested() {
    let guide = include_str!("../../../docs/guide/scheduling.md");
    let source = lines(include_str!("../../src/thrifty.rs"));
    let mut snippets = 0;
    for snippet in guide.split("```rs\n").skip(1) {
        let snippet = snippet.split("```").next().unwrap();
        let is_there = source.contains(&lines(snippet));
        assert!(
            is_there,
            "docs/guide/scheduling.md differs from examples/src/thrifty.rs:\n{snippet}"
        );
        snippets += 1;
    }
    assert_eq!(snippets, 4);
}
