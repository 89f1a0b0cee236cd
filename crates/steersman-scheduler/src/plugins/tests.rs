use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use crate::decision::{Decision, decide};
use crate::requests::PodRequests;
use crate::snapshot::{PodView, State};

fn pod(spec: &Value) -> Pod {
    let mut pod = json!({"metadata": {"namespace": "default", "name": "p"}, "spec": spec});
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "c"}]);
    }
    serde_json::from_value(pod).unwrap()
}

fn asking(cpu: &str) -> Pod {
    pod(&json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}))
}

fn node(name: &str, cpu: &str, change: &Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"disk": "ssd", "cores": "8"}},
        "status": {"allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "2"}},
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        node[key] = value.clone();
    }
    serde_json::from_value(node).unwrap()
}

fn plain(name: &str) -> Node {
    node(name, "8", &json!({}))
}

fn place(pod: &Pod, nodes: &[Node], state: &mut State) -> Decision {
    let views = state.views(nodes);
    decide(&PodView { pod, requests: PodRequests::of(pod), volumes: None }, &views)
}

fn fits(pod: &Pod, node: Node) -> bool {
    matches!(place(pod, &[node], &mut State::default()), Decision::Node(_))
}

fn nowhere(message: &str) -> Decision {
    Decision::Nowhere(message.into())
}

#[test]
fn a_pod_that_fits_nowhere_is_told_why_for_every_node() {
    let nodes = [
        node("a", "1", &json!({})),
        node("b", "8", &json!({"spec": {"unschedulable": true}})),
        node("c", "8", &json!({"spec": {"unschedulable": true}})),
    ];
    let message = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.";
    assert_eq!(place(&asking("4"), &nodes, &mut State::default()), nowhere(message));
    let none = "no nodes available to schedule pods";
    assert_eq!(place(&asking("4"), &[], &mut State::default()), nowhere(none));
}

#[test]
fn the_emptiest_node_is_chosen_and_among_equals_the_first() {
    let nodes = [plain("b"), plain("a")];
    let mut state = State::default();
    assert_eq!(place(&asking("1"), &nodes, &mut state), Decision::Node("a".into()));
    state.assume("x", "a", PodRequests::of(&asking("1")));
    assert_eq!(place(&asking("1"), &nodes, &mut state), Decision::Node("b".into()));
}

#[test]
fn what_other_pods_take_counts() {
    let mut state = State::default();
    state.assume("x", "a", PodRequests::of(&asking("6")));
    let message = "0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(place(&asking("3"), &[plain("a")], &mut state), nowhere(message));
    state.assume("y", "a", PodRequests::of(&asking("1")));
    let message = "0/1 nodes are available: 1 Too many pods.";
    assert_eq!(place(&asking("1"), &[plain("a")], &mut state), nowhere(message));
}

#[test]
fn the_largest_requests_there_are_overflow_nothing() {
    let mut state = State::default();
    let huge = asking("100E");
    let roomy = || node("a", "9223372036854775807m", &json!({}));
    assert_eq!(place(&huge, &[roomy()], &mut state), Decision::Node("a".into()));
    state.assume("x", "a", PodRequests::of(&huge));
    let message = "0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(place(&huge, &[roomy()], &mut state), nowhere(message));
    assert_eq!(place(&asking("-1"), &[roomy()], &mut state), Decision::Node("a".into()));
}

#[test]
fn extended_resources_must_be_there() {
    let gpu = json!({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}});
    let pod = pod(&json!({"containers": [{"name": "c", "resources": gpu}]}));
    let message = "0/1 nodes are available: 1 Insufficient example.com/gpu.";
    assert_eq!(place(&pod, &[plain("a")], &mut State::default()), nowhere(message));
}

#[test]
fn a_node_selector_must_match() {
    assert!(fits(&pod(&json!({"nodeSelector": {"disk": "ssd"}})), plain("a")));
    assert!(!fits(&pod(&json!({"nodeSelector": {"disk": "hdd"}})), plain("a")));
    assert!(!fits(&pod(&json!({"nodeSelector": {"zone": "a"}})), plain("a")));
}

#[test]
fn required_node_affinity_must_match() {
    let table = [
        (json!({"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}), true),
        (json!({"key": "disk", "operator": "NotIn", "values": ["ssd"]}), false),
        (json!({"key": "zone", "operator": "NotIn", "values": ["a"]}), true),
        (json!({"key": "disk", "operator": "Exists"}), true),
        (json!({"key": "disk", "operator": "DoesNotExist"}), false),
        (json!({"key": "cores", "operator": "Gt", "values": ["4"]}), true),
        (json!({"key": "cores", "operator": "Lt", "values": ["4"]}), false),
        (json!({"key": "disk", "operator": "Gt", "values": ["4"]}), false),
    ];
    for (requirement, matches) in table {
        let terms = json!([{"matchExpressions": [requirement]}]);
        assert_eq!(fits(&with_affinity(&terms), plain("a")), matches, "{requirement}");
    }
}

#[test]
fn one_matching_term_is_enough_and_an_empty_term_matches_nothing() {
    let name = json!({"key": "metadata.name", "operator": "In", "values": ["a"]});
    let terms = json!([{}, {"matchFields": [name]}]);
    assert!(fits(&with_affinity(&terms), plain("a")));
    assert!(!fits(&with_affinity(&terms), plain("b")));
}

fn with_affinity(terms: &Value) -> Pod {
    pod(&json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}))
}

#[test]
fn a_taint_keeps_away_whoever_does_not_tolerate_it() {
    let tainted = |effect: &str| {
        let taint = json!({"key": "team", "value": "a", "effect": effect});
        node("a", "8", &json!({"spec": {"taints": [taint]}}))
    };
    let tolerating = |toleration: Value| pod(&json!({"tolerations": [toleration]}));
    assert!(!fits(&pod(&json!({})), tainted("NoSchedule")));
    assert!(!fits(&pod(&json!({})), tainted("NoExecute")));
    assert!(fits(&pod(&json!({})), tainted("PreferNoSchedule")));
    let table = [
        (json!({"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}), true),
        (json!({"key": "team", "value": "a"}), true),
        (json!({"key": "team", "operator": "Exists"}), true),
        (json!({"operator": "Exists"}), true),
        (json!({"key": "team", "value": "b"}), false),
        (json!({"key": "team", "operator": "Exists", "effect": "NoExecute"}), false),
    ];
    for (toleration, fit) in table {
        assert_eq!(
            fits(&tolerating(toleration.clone()), tainted("NoSchedule")),
            fit,
            "{toleration}"
        );
    }
}

#[test]
fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let cordoned = || node("a", "8", &json!({"spec": {"unschedulable": true}}));
    assert!(!fits(&pod(&json!({})), cordoned()));
    assert!(fits(&pod(&json!({"tolerations": [{"operator": "Exists"}]})), cordoned()));
}

#[test]
fn a_port_of_a_node_is_given_once() {
    let taking = |port: i32| {
        let ports = json!([{"containerPort": 80, "hostPort": port}]);
        pod(&json!({"containers": [{"name": "c", "ports": ports}]}))
    };
    let (mut state, node) = (State::default(), plain("n"));
    state.assume("a", "n", PodRequests::of(&taking(8080)));
    let place = |pod: &Pod, state: &mut State| place(pod, std::slice::from_ref(&node), state);
    let refused = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod \
                   ports.";
    assert_eq!(place(&taking(8080), &mut state), Decision::Nowhere(refused.into()));
    assert_eq!(place(&taking(8081), &mut state), Decision::Node("n".into()));
    state.forget("a");
    assert_eq!(place(&taking(8080), &mut state), Decision::Node("n".into()));
}
