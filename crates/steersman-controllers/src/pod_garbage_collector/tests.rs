use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use steersman::cache::Item;
use steersman::informer::Event;

use super::garbage::Garbage;
use super::plan::{self, Reason, Whereabouts};

fn at(seconds: i64) -> Timestamp {
    let noon: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    noon + SignedDuration::from_secs(seconds)
}

fn pod(name: &str, node: &str, changes: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default",
                     "creationTimestamp": "2030-01-01T12:00:00Z", "deletionTimestamp": null},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running", "reason": null},
    });
    for (pointer, value) in changes.as_object().into_iter().flatten() {
        *pod.pointer_mut(pointer).unwrap() = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

#[test]
fn a_pod_is_removed_that_nobody_else_removes() {
    use Whereabouts::{Gone, OutOfService, There};
    let leaves = json!({"/metadata/deletionTimestamp": "2030-01-01T12:00:00Z"});
    let stays = json!({});
    for (node, changes, whereabouts, too_many, expected) in [
        ("n", &stays, There, false, None),
        ("n", &leaves, There, false, None),
        ("n", &stays, OutOfService, false, None),
        ("n", &leaves, OutOfService, false, Some(Reason::OutOfService)),
        ("n", &stays, Gone, false, Some(Reason::Orphaned)),
        ("", &stays, There, false, None),
        ("", &leaves, There, false, Some(Reason::Unscheduled)),
        ("n", &stays, There, true, Some(Reason::Terminated)),
    ] {
        let found = plan::reason(&pod("a", node, changes), whereabouts, too_many);
        assert_eq!(found, expected, "{node} {changes} {whereabouts:?}");
    }
}

#[test]
fn pods_are_removed_when_pods_are_looked_at_and_orphans_after_a_quarantine() {
    for (reason, since, due) in [
        (Reason::Unscheduled, 1, 20),
        (Reason::OutOfService, 20, 40),
        (Reason::Terminated, 39, 40),
        (Reason::Orphaned, 1, 60),
        (Reason::Orphaned, 20, 80),
    ] {
        assert_eq!(plan::due(reason, at(since)), at(due), "{reason:?} {since}");
    }
}

#[test]
fn a_node_is_out_of_service_if_somebody_says_so_and_it_is_not_ready() {
    let node = |ready: &str, key: &str| -> Node {
        let node = json!({
            "spec": {"taints": [{"key": key, "effect": "NoExecute"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        serde_json::from_value(node).unwrap()
    };
    let key = "node.kubernetes.io/out-of-service";
    for (ready, key, expected) in
        [("False", key, true), ("Unknown", key, true), ("True", key, false), ("False", "a", false)]
    {
        assert_eq!(plan::out_of_service(&node(ready, key)), expected, "{ready} {key}");
    }
}

#[test]
fn of_too_many_that_have_ended_the_evicted_and_then_the_oldest_go() {
    let garbage = Garbage::new(2);
    let node = serde_json::from_value::<Node>(json!({"metadata": {"name": "n"}})).unwrap();
    garbage.observe_node(&Event::Added { object: Item::typed(node), initial: false });
    let ended = |name: &str, created: &str, reason: Option<&str>| {
        let changes = json!({"/status": {"phase": "Failed", "reason": reason},
                             "/metadata/creationTimestamp": created});
        pod(name, "n", &changes)
    };
    let pods = [
        ended("old", "2030-01-01T10:00:00Z", None),
        ended("new", "2030-01-01T11:00:00Z", None),
        pod("runs", "n", &json!({})),
        ended("older", "2030-01-01T09:00:00Z", None),
        ended("evicted", "2030-01-01T11:30:00Z", Some("Evicted")),
    ];
    let observe = |pod: &Pod| {
        garbage.observe(&Event::Added { object: Item::typed(pod.clone()), initial: false });
    };
    let removed = || -> Vec<String> {
        let due = |pod: &&Pod| garbage.due(pod, at(1)).is_some();
        pods.iter().filter(due).filter_map(|pod| pod.metadata.name.clone()).collect()
    };
    pods[..3].iter().for_each(observe);
    assert!(removed().is_empty());
    pods[3..].iter().for_each(observe);
    assert_eq!(removed(), ["older", "evicted"]);
    let gone = Event::Deleted { object: Item::typed(pods[1].clone()), final_state_unknown: false };
    garbage.observe(&gone);
    assert_eq!(removed(), ["evicted"]);
}
