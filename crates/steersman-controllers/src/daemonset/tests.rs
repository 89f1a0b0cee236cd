use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::nodes::{Placement, differ, placement};
use super::plan::{Daemon, Plan};
use super::template;

const NOW: &str = "2030-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn merge(base: &mut Value, change: &Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change.clone(),
    }
}

/// A set, changed by a merge of `spec`.
fn set(spec: &Value) -> DaemonSet {
    let mut set = json!({
        "metadata": {"namespace": "default", "name": "log", "uid": "set", "generation": 2,
                     "annotations": {"deprecated.daemonset.template.generation": "7"}},
        "spec": {
            "selector": {"matchLabels": {"app": "log"}},
            "updateStrategy": {"type": "RollingUpdate",
                               "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "template": {"metadata": {"labels": {"app": "log"}},
                         "spec": {"containers": [{"name": "main", "image": "new"}]}},
        },
    });
    merge(&mut set["spec"], spec);
    serde_json::from_value(set).unwrap()
}

fn of_pods(spec: &Value) -> DaemonSet {
    set(&json!({"template": {"spec": spec}}))
}

fn node(name: &str, change: &Value) -> Arc<Node> {
    let mut node = json!({"metadata": {"name": name, "labels": {"disk": "ssd"}}, "spec": {}});
    merge(&mut node, change);
    Arc::new(serde_json::from_value(node).unwrap())
}

fn tainted(key: &str, effect: &str) -> Arc<Node> {
    node("a", &json!({"spec": {"taints": [{"key": key, "effect": effect}]}}))
}

/// A Pod by a word: `ready`, `old` (ready, of the old template), `starting`, `failed`, `done`,
/// `leaving`, `old-starting`, `waiting` (for its node).
fn pod(name: &str, node: &str, is: &str) -> Arc<Pod> {
    let (phase, ready) = match is {
        "starting" | "old-starting" | "waiting" => ("Pending", "False"),
        "failed" => ("Failed", "False"),
        "done" => ("Succeeded", "False"),
        _ => ("Running", "True"),
    };
    let hash = if is.starts_with("old") { "a" } else { "b" };
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name,
                     "labels": {"controller-revision-hash": hash},
                     "creationTimestamp": "2030-01-01T11:00:00Z",
                     "deletionTimestamp": (is == "leaving").then_some(NOW)},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": "2030-01-01T11:59:50Z"}]},
    });
    if is == "waiting" {
        pod["spec"] =
            serde_json::to_value(template::pod_for(&set(&json!({})), node, "b").spec).unwrap();
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn words(plan: &Plan) -> Vec<String> {
    let created = plan.create.iter().map(|node| format!("create on {node}"));
    let deleted =
        plan.delete.iter().map(|pod| format!("delete {}", pod.metadata.name.as_ref().unwrap()));
    created.chain(deleted).collect()
}

fn names(names: &[&str]) -> Vec<Arc<Node>> {
    names.iter().map(|name| node(name, &json!({}))).collect()
}

fn planned(set: &DaemonSet, nodes: &[Arc<Node>], pods: &[Arc<Pod>]) -> Vec<String> {
    words(&Daemon::new(set, nodes, pods, "b", now()).plan(&|_| Ok(())))
}

fn rolled(set: &DaemonSet, nodes: &[&str], pods: &[Arc<Pod>]) -> Vec<String> {
    words(&Daemon::new(set, &names(nodes), pods, "b", now()).roll())
}

#[test]
fn nodes_are_chosen_by_name_labels_and_taints() {
    let yes = Placement { runs: true, keeps: true };
    let no = Placement { runs: false, keeps: false };
    let stays = Placement { runs: false, keeps: true };
    let a = node("a", &json!({}));
    let in_fields = |name: &str| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchFields":
                [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}}})
    };
    let tolerant = json!({"tolerations": [{"key": "x", "operator": "Exists"}]});
    let cases = [
        (json!({}), a.clone(), yes),
        (json!({"nodeName": "a"}), a.clone(), yes),
        (json!({"nodeName": "b"}), a.clone(), no),
        (json!({"nodeSelector": {"disk": "ssd"}}), a.clone(), yes),
        (json!({"nodeSelector": {"disk": "hdd"}}), a.clone(), no),
        (in_fields("a"), a.clone(), yes),
        (in_fields("b"), a.clone(), no),
        (json!({}), tainted("x", "NoSchedule"), stays),
        (json!({}), tainted("x", "NoExecute"), no),
        (json!({}), tainted("x", "PreferNoSchedule"), yes),
        (tolerant.clone(), tainted("x", "NoSchedule"), yes),
        (tolerant, tainted("y", "NoSchedule"), stays),
        (json!({}), tainted("node.kubernetes.io/not-ready", "NoExecute"), yes),
        (json!({}), tainted("node.kubernetes.io/not-ready", "NoSchedule"), stays),
        (json!({}), tainted("node.kubernetes.io/unschedulable", "NoSchedule"), yes),
        (json!({}), tainted("node.kubernetes.io/network-unavailable", "NoSchedule"), stays),
        (
            json!({"hostNetwork": true}),
            tainted("node.kubernetes.io/network-unavailable", "NoSchedule"),
            yes,
        ),
    ];
    for (spec, node, expected) in cases {
        assert_eq!(placement(&of_pods(&spec), &node), expected, "{spec} {:?}", node.spec);
    }
}

#[test]
fn a_heartbeat_of_a_node_concerns_nobody() {
    let a = node("a", &json!({}));
    let beat = node("a", &json!({"status": {"phase": "Running"}}));
    assert!(!differ(&a, &beat));
    assert!(differ(&a, &tainted("x", "NoSchedule")));
    assert!(differ(&a, &node("a", &json!({"metadata": {"labels": {"disk": "hdd"}}}))));
}

#[test]
fn a_pod_is_for_one_node_and_tolerates_what_befalls_it() {
    let spec = json!({
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}},
        "tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                         "effect": "NoExecute", "tolerationSeconds": 5}],
    });
    let pod = template::pod_for(&of_pods(&spec), "a", "b");
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("log-"));
    let labels = pod.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["controller-revision-hash"], "b");
    assert_eq!(labels["pod-template-generation"], "7");
    assert_eq!(template::node_of(&pod), Some("a"));
    let spec = serde_json::to_value(pod.spec.unwrap()).unwrap();
    let required =
        &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["a"]});
    assert_eq!(required["nodeSelectorTerms"], json!([{"matchFields": [field]}]));
    let tolerations = spec["tolerations"].as_array().unwrap();
    assert_eq!(tolerations.len(), 6);
    assert!(tolerations.iter().all(|toleration| toleration["tolerationSeconds"].is_null()));
}

#[test]
fn every_node_that_should_have_a_pod_gets_one() {
    let set = set(&json!({}));
    let nodes = &names(&["a", "b"]);
    assert_eq!(planned(&set, nodes, &[pod("p", "a", "starting")]), ["create on b"]);
    assert_eq!(
        planned(&set, nodes, &[pod("p", "a", "ready"), pod("q", "b", "leaving")]),
        [] as [&str; 0]
    );
    let gone = [tainted("x", "NoExecute")];
    assert_eq!(
        planned(&set, &gone, &[pod("p", "a", "ready"), pod("q", "a", "leaving")]),
        ["delete p"]
    );
    assert_eq!(
        planned(&set, &[tainted("x", "NoSchedule")], &[pod("p", "a", "ready")]),
        [] as [&str; 0]
    );
    assert_eq!(planned(&set, &[tainted("x", "NoSchedule")], &[]), [] as [&str; 0]);
}

#[test]
fn of_several_pods_on_a_node_the_oldest_stays() {
    let pods = [pod("q", "a", "ready"), pod("p", "a", "ready"), pod("w", "a", "waiting")];
    assert_eq!(planned(&set(&json!({})), &names(&["a"]), &pods), ["delete q", "delete w"]);
}

#[test]
fn pods_that_wait_for_a_node_that_is_gone_are_deleted() {
    let pods = [pod("w", "gone", "waiting"), pod("p", "gone", "ready")];
    assert_eq!(planned(&set(&json!({})), &[], &pods), ["delete w"]);
}

#[test]
fn pods_that_have_ended_are_deleted_and_failed_ones_not_too_fast() {
    let nodes = names(&["a", "b"]);
    let pods = [pod("p", "a", "failed"), pod("q", "b", "done")];
    let set = set(&json!({}));
    let daemon = Daemon::new(&set, &nodes, &pods, "b", now());
    let plan = daemon.plan(&|_| Ok(()));
    assert_eq!(words(&plan), ["delete p", "delete q"]);
    assert_eq!(plan.ended.len(), 2);
    let plan = daemon.plan(&|_| Err(Duration::from_secs(4)));
    assert_eq!(words(&plan), ["delete q"]);
    assert_eq!(plan.retry_in, Some(Duration::from_secs(4)));
}

#[test]
fn a_rolling_update_deletes_no_more_than_may_be_missing() {
    let old = [pod("p", "a", "old"), pod("q", "b", "old"), pod("r", "c", "old")];
    let nodes = ["a", "b", "c"];
    let with =
        |max: Value| set(&json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": max}}}));
    assert_eq!(rolled(&with(json!(1)), &nodes, &old), ["delete p"]);
    assert_eq!(rolled(&with(json!("50%")), &nodes, &old), ["delete p", "delete q"]);
    assert_eq!(rolled(&with(json!(0)), &nodes, &old), ["delete p"], "something must be possible");
    let begun = [pod("p", "a", "starting"), pod("q", "b", "old"), pod("r", "c", "old")];
    assert_eq!(rolled(&with(json!(1)), &nodes, &begun), [] as [&str; 0]);
    assert_eq!(rolled(&with(json!(2)), &nodes, &begun), ["delete q"]);
    let broken = [pod("p", "a", "starting"), pod("q", "b", "old-starting"), pod("r", "c", "old")];
    assert_eq!(rolled(&with(json!(1)), &nodes, &broken), ["delete q"], "it is of no use");
    let on_delete = set(&json!({"updateStrategy": {"type": "OnDelete"}}));
    assert_eq!(rolled(&on_delete, &nodes, &old), [] as [&str; 0]);
}

#[test]
fn with_a_surge_new_pods_come_before_old_ones_go() {
    let surge = |max: Value| {
        let rolling = json!({"maxUnavailable": 0, "maxSurge": max});
        set(&json!({"updateStrategy": {"rollingUpdate": rolling}}))
    };
    let nodes = ["a", "b"];
    let old = [pod("p", "a", "old"), pod("q", "b", "old")];
    assert_eq!(rolled(&surge(json!(1)), &nodes, &old), ["create on a"]);
    assert_eq!(rolled(&surge(json!("100%")), &nodes, &old), ["create on a", "create on b"]);
    let begun = [pod("p", "a", "old"), pod("n", "a", "starting"), pod("q", "b", "old")];
    assert_eq!(rolled(&surge(json!(1)), &nodes, &begun), [] as [&str; 0]);
    let arrived = [pod("p", "a", "old"), pod("n", "a", "ready"), pod("q", "b", "old")];
    assert_eq!(rolled(&surge(json!(1)), &nodes, &arrived), ["create on b", "delete p"]);
    assert_eq!(planned(&surge(json!(1)), &names(&nodes), &arrived), ["delete p"]);
    assert_eq!(planned(&surge(json!(1)), &names(&nodes), &begun), [] as [&str; 0]);
    let useless = [pod("p", "a", "old-starting"), pod("q", "b", "ready")];
    assert_eq!(rolled(&surge(json!(1)), &nodes, &useless), ["create on a"]);
}

#[test]
fn status_counts_nodes() {
    let mut nodes = names(&["a", "b", "c", "d"]);
    nodes.push(node("e", &json!({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})));
    let pods = [
        pod("p", "a", "ready"),
        pod("q", "b", "old"),
        pod("r", "c", "starting"),
        pod("s", "e", "ready"),
    ];
    let slow = set(&json!({"minReadySeconds": 15}));
    let set = set(&json!({"minReadySeconds": 5}));
    let daemon = Daemon::new(&set, &nodes, &pods, "b", now());
    let status = daemon.status(None);
    assert_eq!((status.desired_number_scheduled, status.current_number_scheduled), (4, 3));
    assert_eq!((status.number_misscheduled, status.number_ready), (1, 2));
    assert_eq!((status.number_available, status.number_unavailable), (Some(2), Some(2)));
    assert_eq!((status.updated_number_scheduled, status.observed_generation), (Some(2), Some(2)));
    let daemon = Daemon::new(&slow, &nodes, &pods, "b", now());
    assert_eq!(daemon.status(None).number_available, None);
    assert_eq!(daemon.next_available(), Some(Duration::from_secs(5)));
}
