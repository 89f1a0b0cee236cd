use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::plan::{self, Plan, plan};
use super::status::{self, Failure};

const NOW: &str = "2030-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn set(replicas: i32) -> ReplicaSet {
    let set = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "set", "generation": 4},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"team": "a"}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    });
    serde_json::from_value(set).unwrap()
}

/// A running, ready Pod on a node of its own, changed by a merge of `change`.
fn pod(name: &str, change: &Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": name, "uid": name, "labels": {"app": "web"},
                     "creationTimestamp": "2030-01-01T11:00:00Z"},
        "spec": {"nodeName": name, "containers": []},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T11:00:00Z"}]},
    });
    merge(&mut pod, change);
    Arc::new(serde_json::from_value(pod).unwrap())
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

fn ready_since(time: &str) -> Value {
    json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": time}]}})
}

#[test]
fn missing_pods_are_created_and_surplus_pods_deleted() {
    let pods: Vec<_> = (0..3).map(|i| pod(&format!("p{i}"), &json!({}))).collect();
    assert!(matches!(plan(&set(3), &pods, &[], now()), Plan::Nothing));
    assert!(matches!(plan(&set(5), &pods, &[], now()), Plan::Create(2)));
    assert!(matches!(plan(&set(1), &pods, &[], now()), Plan::Delete(gone) if gone.len() == 2));
    assert!(matches!(plan(&set(0), &[], &[], now()), Plan::Nothing));
    assert!(matches!(plan(&set(10_000), &[], &[], now()), Plan::Create(500)));
}

#[test]
fn the_least_useful_pod_goes_first() {
    let good = pod("good", &json!({}));
    let worse = [
        ("without a node", json!({"spec": {"nodeName": null}})),
        ("pending", json!({"status": {"phase": "Pending"}})),
        ("not ready", json!({"status": {"conditions": []}})),
        (
            "cheap",
            json!({"metadata": {"annotations":
            {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}),
        ),
        ("ready for a short time", ready_since("2030-01-01T11:59:58Z")),
        (
            "restarted",
            json!({"status": {"containerStatuses": [
            {"name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 2}]}}),
        ),
        ("young", json!({"metadata": {"creationTimestamp": "2030-01-01T11:59:50Z"}})),
    ];
    for (why, change) in worse {
        let bad = pod("bad", &change);
        for pods in [[good.clone(), bad.clone()], [bad.clone(), good.clone()]] {
            let Plan::Delete(gone) = plan(&set(1), &pods, &[], now()) else {
                panic!("{why}: nothing was deleted");
            };
            assert_eq!(gone[0].metadata.name.as_deref(), Some("bad"), "{why}");
        }
    }
}

#[test]
fn pods_ready_for_about_as_long_are_chosen_by_chance_whatever_else_they_are() {
    let restarted = json!({"status": {
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T11:00:01Z"}],
        "containerStatuses": [
            {"name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 2}]}});
    let pods = [pod("a", &json!({})), pod("b", &restarted)];
    let Plan::Delete(gone) = plan(&set(1), &pods, &[], now()) else {
        panic!("nothing was deleted");
    };
    assert_eq!(gone[0].metadata.uid.as_deref(), Some("a"));
}

#[test]
fn many_pods_of_about_the_same_age_have_one_order() {
    // Ready at the same second as some and at another than others, with other restarts and uids.
    let pods: Vec<_> = (0..200_u32)
        .map(|n| {
            let second = n * 7 % 13;
            let mut change = ready_since(&format!("2030-01-01T11:00:{second:02}Z"));
            let restarts = n * 11 % 5;
            change["status"]["containerStatuses"] = json!([{
                "name": "main", "image": "", "imageID": "", "ready": true,
                "restartCount": restarts,
            }]);
            change["spec"]["nodeName"] = "node".into();
            pod(&format!("{:03}", n * 37 % 200), &change)
        })
        .collect();
    let order = |pods: &[Arc<Pod>]| -> Vec<String> {
        let ranked = super::ranking::first_to_go(pods, pods, now());
        ranked.iter().map(|pod| pod.metadata.uid.clone().unwrap()).collect()
    };
    let mut turned = pods.clone();
    turned.reverse();
    assert_eq!(order(&pods), order(&turned));
    turned.rotate_left(77);
    assert_eq!(order(&pods), order(&turned));
}

#[test]
fn among_equals_the_pod_with_most_siblings_on_its_node_goes_first() {
    let alone = pod("a", &json!({"spec": {"nodeName": "n1"}}));
    let crowded = pod("b", &json!({"spec": {"nodeName": "n2"}}));
    let sibling = pod("c", &json!({"spec": {"nodeName": "n2"}}));
    let related = [alone.clone(), crowded.clone(), sibling];
    let Plan::Delete(gone) = plan(&set(1), &[alone, crowded], &related, now()) else {
        panic!("nothing was deleted");
    };
    assert_eq!(gone[0].metadata.name.as_deref(), Some("b"));
}

#[test]
fn a_new_pod_follows_the_template() {
    let pod = plan::new_pod(&set(1));
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-"));
    assert_eq!(pod.metadata.labels.unwrap()["app"], "web");
    assert_eq!(pod.metadata.annotations.unwrap()["team"], "a");
    assert_eq!(pod.spec.unwrap().containers[0].name, "main");
}

#[test]
fn status_counts_active_ready_available_and_terminating_pods() {
    let mut set = set(5);
    set.spec.as_mut().unwrap().min_ready_seconds = Some(60);
    let pods = [
        pod("available", &json!({})),
        pod("fresh", &ready_since("2030-01-01T11:59:50Z")),
        pod("starting", &json!({"status": {"conditions": []}})),
        pod("leaving", &json!({"metadata": {"deletionTimestamp": NOW}})),
        pod("failed", &json!({"status": {"phase": "Failed"}})),
    ];
    let found = status::status(&set, &pods, None, now());
    assert_eq!(found.replicas, 3);
    assert_eq!(found.ready_replicas, Some(2));
    assert_eq!(found.available_replicas, Some(1));
    assert_eq!(found.fully_labeled_replicas, Some(3));
    assert_eq!(found.terminating_replicas, Some(1));
    assert_eq!(found.observed_generation, Some(4));
    assert_eq!(found.conditions, None);
    assert_eq!(status::next_available(&set, &pods, now()), Some(Duration::from_secs(50)));
}

#[test]
fn a_failure_to_delete_says_what_was_tried() {
    let told = |reason| super::reconcile::failed(reason, steersman::Error::message("no")).0.message;
    assert_eq!(told("FailedCreate"), "no");
    assert_eq!(told("FailedDelete"), "unable to delete pods: no");
}

#[test]
fn a_failure_is_reported_as_first_told_until_it_is_over() {
    let mut set = set(1);
    let failure = Failure { reason: "FailedCreate", message: "quota".into() };
    let first = status::status(&set, &[], Some(&failure), now());
    set.status = Some(first.clone());
    let later = now() + Duration::from_secs(60);
    let other = Failure { reason: "FailedDelete", message: "another".into() };
    let second = status::status(&set, &[], Some(&other), later);
    assert_eq!(first.conditions, second.conditions);
    assert_eq!(second.conditions.as_ref().unwrap()[0].message.as_deref(), Some("quota"));
    assert_eq!(status::status(&set, &[], None, later).conditions, None);
}
