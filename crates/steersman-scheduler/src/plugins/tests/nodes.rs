//! Names, taints, labels and ports of nodes.

use serde_json::{Value, json};

use crate::testing::{World, asking, node, nowhere, on, pod};

fn with_affinity(terms: &Value) -> k8s_openapi::api::core::v1::Pod {
    pod(
        "p",
        &json!({"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}}),
    )
}

fn labelled(name: &str) -> k8s_openapi::api::core::v1::Node {
    node(name, &json!({"metadata": {"labels": {"disk": "ssd", "cores": "8"}}}))
}

#[test]
fn a_pod_that_fits_nowhere_is_told_why_for_every_node() {
    let world = World::of([
        node("a", &json!({"status": {"allocatable": {"cpu": "1"}}})),
        node("b", &json!({"spec": {"unschedulable": true}})),
        node("c", &json!({"spec": {"unschedulable": true}})),
    ]);
    let message = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.";
    assert_eq!(world.place(&asking("p", "4")), nowhere(message));
    assert_eq!(World::default().place(&asking("p", "4")), nowhere("no nodes"));
}

#[test]
fn required_node_affinity_must_match() {
    for (requirement, matches) in [
        (json!({"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}), true),
        (json!({"key": "disk", "operator": "NotIn", "values": ["ssd"]}), false),
        (json!({"key": "zone", "operator": "NotIn", "values": ["a"]}), true),
        (json!({"key": "disk", "operator": "Exists"}), true),
        (json!({"key": "disk", "operator": "DoesNotExist"}), false),
        (json!({"key": "cores", "operator": "Gt", "values": ["4"]}), true),
        (json!({"key": "cores", "operator": "Lt", "values": ["4"]}), false),
        (json!({"key": "disk", "operator": "Gt", "values": ["4"]}), false),
    ] {
        let pod = with_affinity(&json!([{"matchExpressions": [requirement]}]));
        assert_eq!(World::of([labelled("a")]).fits(&pod), matches, "{requirement}");
    }
    let selecting = |disk: &str| pod("p", &json!({"spec": {"nodeSelector": {"disk": disk}}}));
    assert!(World::of([labelled("a")]).fits(&selecting("ssd")));
    let message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    assert_eq!(World::of([labelled("a")]).place(&selecting("hdd")), nowhere(message));
}

#[test]
fn one_matching_term_is_enough_and_named_nodes_alone_are_looked_at() {
    let named = |names: &[&str]| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]});
    let world = World::of([labelled("a"), labelled("b"), labelled("c")]);
    assert_eq!(world.place(&with_affinity(&json!([named(&["b"])]))), on("b"));
    assert_eq!(world.place(&with_affinity(&json!([{}, named(&["c"])]))), on("c"));
    let conflict = json!([{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["a"]},
        {"key": "metadata.name", "operator": "In", "values": ["b"]},
    ]}]);
    let message = "0/3 nodes are available: pod affinity terms conflict.";
    assert_eq!(world.place(&with_affinity(&conflict)), nowhere(message));
    let mut full = with_affinity(&json!([named(&["b"])]));
    full.spec.as_mut().unwrap().containers = asking("p", "9").spec.unwrap().containers;
    let message = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) \
                   [NodeAffinity].";
    assert_eq!(world.place(&full), nowhere(message));
}

#[test]
fn preferred_node_affinity_counts_by_weight() {
    let term = |weight: i32, key: &str, value: &str| {
        let expression = json!({"key": key, "operator": "In", "values": [value]});
        json!({"weight": weight, "preference": {"matchExpressions": [expression]}})
    };
    let terms = json!([term(2, "disk", "ssd"), term(5, "zone", "z1"), term(1, "none", "x")]);
    let pod = pod(
        "p",
        &json!({"spec": {"affinity": {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": terms}}}}),
    );
    let node = |name: &str, labels: Value| node(name, &json!({"metadata": {"labels": labels}}));
    let world = World::of([
        node("a", json!({"disk": "ssd"})),
        node("b", json!({"disk": "ssd", "zone": "z1"})),
        node("c", json!({})),
    ]);
    assert_eq!(world.scores_by("NodeAffinity", &json!({}), &pod), [28, 100, 0]);
}

#[test]
fn a_taint_keeps_away_whoever_does_not_tolerate_it() {
    let tainted = |effect: &str| {
        let taint = json!({"key": "team", "value": "a", "effect": effect});
        World::of([node("a", &json!({"spec": {"taints": [taint]}}))])
    };
    let tolerating = |it: &Value| pod("p", &json!({"spec": {"tolerations": [it]}}));
    let plain = pod("p", &json!({}));
    let message = "0/1 nodes are available: 1 node(s) had untolerated taint(s).";
    assert_eq!(tainted("NoSchedule").place(&plain), nowhere(message));
    assert_eq!(tainted("NoExecute").place(&plain), nowhere(message));
    assert!(tainted("PreferNoSchedule").fits(&plain));
    for (toleration, fits) in [
        (json!({"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}), true),
        (json!({"key": "team", "value": "a"}), true),
        (json!({"key": "team", "operator": "Exists"}), true),
        (json!({"operator": "Exists"}), true),
        (json!({"key": "team", "value": "b"}), false),
        (json!({"key": "team", "operator": "Exists", "effect": "NoExecute"}), false),
    ] {
        let found = tainted("NoSchedule").fits(&tolerating(&toleration));
        assert_eq!(found, fits, "{toleration}");
    }
}

#[test]
fn nodes_to_be_avoided_are_the_worse_the_more_taints_say_so() {
    let avoided = |name: &str, keys: &[&str]| {
        let taint = |key: &&str| json!({"key": key, "effect": "PreferNoSchedule"});
        let taints: Vec<Value> = keys.iter().map(taint).collect();
        node(name, &json!({"spec": {"taints": taints}}))
    };
    let nodes = || World::of([avoided("a", &[]), avoided("b", &["x"]), avoided("c", &["x", "y"])]);
    let scores = |pod| nodes().scores_by("TaintToleration", &json!({}), &pod);
    assert_eq!(scores(pod("p", &json!({}))), [100, 50, 0]);
    let tolerations = json!([{"key": "x", "operator": "Exists"}]);
    assert_eq!(scores(pod("p", &json!({"spec": {"tolerations": tolerations}}))), [100, 100, 0]);
}

#[test]
fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let cordoned = World::of([node("a", &json!({"spec": {"unschedulable": true}}))]);
    assert!(!cordoned.fits(&pod("p", &json!({}))));
    let all = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    assert!(cordoned.fits(&pod("p", &all)));
}

#[test]
fn a_port_of_a_node_is_given_once() {
    let taking = |name: &str, port: i32| {
        let ports = json!([{"containerPort": 80, "hostPort": port}]);
        pod(name, &json!({"spec": {"containers": [{"name": "c", "ports": ports}]}}))
    };
    let mut world = World::of([node("n", &json!({}))]);
    world.put("n", &taking("a", 8080));
    let refused = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod \
                   ports.";
    assert_eq!(world.place(&taking("b", 8080)), nowhere(refused));
    assert_eq!(world.place(&taking("b", 8081)), on("n"));
    world.nodes[0].remove_pod("a");
    assert_eq!(world.place(&taking("b", 8080)), on("n"));
}

#[test]
fn images_count_by_size_and_by_how_many_nodes_have_them() {
    let mib = 1 << 20;
    let having = |name: &str, image: &str, size: i64| {
        let images = json!([{"names": [image], "sizeBytes": size}]);
        node(name, &json!({"status": {"images": images}}))
    };
    let world = || {
        World::of([
            having("a", "gcr.io/250:latest", 250 * mib),
            having("b", "gcr.io/40:latest", 40 * mib),
        ])
    };
    let image =
        |name: &str| pod("p", &json!({"spec": {"containers": [{"name": "c", "image": name}]}}));
    let scores = |name: &str| world().scores_by("ImageLocality", &json!({}), &image(name));
    // Half of 250 MiB, less the 23 that do not count, of the 977 that do.
    assert_eq!(scores("gcr.io/250"), [10, 0]);
    assert_eq!(scores("gcr.io/40:latest"), [0, 0]);
}

#[test]
fn a_pod_goes_only_where_the_kubelet_can_do_what_it_needs() {
    let declaring = |name: &str, features: &[&str]| {
        node(name, &json!({"status": {"declaredFeatures": features}}))
    };
    let restarts_all = json!([{"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [42]}}]);
    let init = |rules: &Value| {
        let container = json!({"name": "i", "image": "i", "restartPolicyRules": rules});
        pod("p", &json!({"spec": {"initContainers": [container]}}))
    };
    let needing = init(&restarts_all);
    let world = World::of([declaring("a", &[]), declaring("b", &["Something"])]);
    let message = "0/2 nodes are available: 2 node(s) didn't match Pod's required features.";
    assert_eq!(world.place(&needing), nowhere(message));
    assert!(world.fits(&init(&json!([]))), "who needs nothing goes anywhere");
    let able = ["RestartAllContainersOnContainerExits", "Something"];
    let world = World::of([declaring("a", &[]), declaring("b", &able)]);
    assert_eq!(world.place(&needing), on("b"));
    let namespaces = pod("p", &json!({"spec": {"hostNetwork": true, "hostUsers": false}}));
    assert!(!world.fits(&namespaces));
}
