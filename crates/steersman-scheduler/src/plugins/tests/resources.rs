//! Room on nodes.

use serde_json::{Value, json};

use crate::testing::{World, asking, node, nowhere, on, pod};

fn with(cpu: i64, memory: i64) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {
        "cpu": format!("{cpu}m"), "memory": memory.to_string()}}}]}})
}

fn sized(name: &str, cpu: i64, memory: i64) -> k8s_openapi::api::core::v1::Node {
    let offered = json!({"cpu": format!("{cpu}m"), "memory": memory.to_string(), "pods": "10"});
    node(name, &json!({"status": {"allocatable": offered}}))
}

#[test]
fn the_emptiest_node_is_chosen_and_among_equals_the_first() {
    let mut world = World::of([node("a", &json!({})), node("b", &json!({}))]);
    assert_eq!(world.place(&asking("p", "1")), on("a"));
    world.put("a", &asking("x", "1"));
    assert_eq!(world.place(&asking("p", "1")), on("b"));
}

#[test]
fn what_other_pods_take_counts() {
    let small = json!({"status": {"allocatable": {"pods": "2"}}});
    let mut world = World::of([node("a", &small)]);
    world.put("a", &asking("x", "6"));
    let message = "0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(world.place(&asking("p", "3")), nowhere(message));
    world.put("a", &asking("y", "1"));
    let message = "0/1 nodes are available: 1 Too many pods.";
    assert_eq!(world.place(&asking("p", "1")), nowhere(message));
    let message = "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods.";
    assert_eq!(world.place(&asking("p", "3")), nowhere(message));
}

#[test]
fn the_largest_requests_there_are_overflow_nothing() {
    let roomy = json!({"status": {"allocatable": {"cpu": "9223372036854775807m"}}});
    let mut world = World::of([node("a", &roomy)]);
    let huge = asking("p", "100E");
    assert_eq!(world.place(&huge), on("a"));
    world.put("a", &asking("x", "100E"));
    let message = "0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(world.place(&huge), nowhere(message));
    assert_eq!(world.place(&asking("p", "-1")), on("a"));
}

#[test]
fn extended_resources_must_be_there_unless_they_are_ignored() {
    let gpu = json!({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}});
    let pod = pod("p", &json!({"spec": {"containers": [{"name": "c", "resources": gpu}]}}));
    let mut world = World::of([node("a", &json!({}))]);
    let message = "0/1 nodes are available: 1 Insufficient example.com/gpu.";
    assert_eq!(world.place(&pod), nowhere(message));
    let ignoring = |args: Value| {
        let document = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}],
        });
        crate::Configuration::parse(&document.to_string()).unwrap()
    };
    world.configuration = ignoring(json!({"ignoredResourceGroups": ["example.com"]}));
    assert!(world.fits(&pod));
    world.configuration = ignoring(json!({"ignoredResources": ["example.com/other"]}));
    assert!(!world.fits(&pod));
}

/// The cases of Kubernetes' own tests of the strategies: machines of 4000 and 6000 thousandths of a cpu
/// and 10000 bytes, on which 3000 and 5000 are asked for.
#[test]
fn strategies_prefer_empty_or_full_nodes() {
    let world = || World::of([sized("a", 4000, 10000), sized("b", 6000, 10000)]);
    let least = |pod| world().scores_by("NodeResourcesFit", &json!({}), &pod);
    let most = json!({"scoringStrategy": {"type": "MostAllocated", "resources": [
        {"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}});
    let most = |pod| world().scores_by("NodeResourcesFit", &most, &pod);
    let asked = || pod("p", &with(3000, 5000));
    assert_eq!(least(asked()), [37, 50]); // (25 + 50) / 2, (50 + 50) / 2
    assert_eq!(most(asked()), [62, 50]); // (75 + 50) / 2, (50 + 50) / 2
    let ratio = json!({"scoringStrategy": {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {
            "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]},
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }});
    let ratio = world().scores_by("NodeResourcesFit", &ratio, &asked());
    assert_eq!(ratio, [38, 50]); // rounded
}

#[test]
fn what_a_pod_does_not_say_is_assumed_for_scores_alone() {
    let world = || {
        let mut world = World::of([sized("a", 1000, 1 << 30), sized("b", 1000, 1 << 30)]);
        world.put("a", &pod("x", &json!({})));
        world
    };
    let scores = world().scores_by("NodeResourcesFit", &json!({}), &pod("p", &json!({})));
    // A tenth of a cpu each, and 200 of 1024 MiB each.
    assert_eq!(scores, [70, 85]);
}

#[test]
fn nodes_whose_resources_are_taken_evenly_are_better() {
    let scores = |taken: &[(&str, i64, i64)], asked: Value| {
        let mut world = World::of([sized("a", 10000, 20000), sized("b", 10000, 20000)]);
        for (node, cpu, memory) in taken {
            world.put(node, &pod(&format!("{node}{cpu}"), &with(*cpu, *memory)));
        }
        world.scores_by("NodeResourcesBalancedAllocation", &json!({}), &pod("p", &asked))
    };
    // A Pod that asks for nothing says nothing; all nodes get the same.
    assert_eq!(scores(&[], json!({})), [0, 0]);
    // 0.3 and 0.25 are taken with the Pod, which is 97 even, and nothing before, which is 100.
    assert_eq!(scores(&[], with(3000, 5000)), [73, 73]);
    // On b it evens out what was uneven: 100 after 75, and on a 75 after 100.
    assert_eq!(scores(&[("b", 0, 10000)], with(5000, 0)), [62, 87]);
}

#[test]
fn what_a_whole_pod_asks_for_counts_on_its_node_and_not_when_nodes_are_compared() {
    let whole = json!({"spec": {"resources": {"requests": {"cpu": "4"}}}});
    let scores = |cpu: &str| {
        let nodes = [node("a", &json!({"status": {"allocatable": {"cpu": cpu}}}))];
        World::of(nodes).scores_by("NodeResourcesFit", &json!({}), &pod("p", &whole))
    };
    // By a tenth of a cpu, as of a Pod that says nothing: (97 + 99) / 2.
    assert_eq!(scores("4"), [98]);
    let mut world = World::of([node("a", &json!({}))]);
    world.put("a", &pod("x", &whole));
    let message = "0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(world.place(&asking("p", "5")), nowhere(message));
}
