use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PropagationPolicy;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, interval};

use super::graph::{Deletion, Graph, Node, Work};
use super::monitors::is_collectable;
use super::objects::Metadata;
use super::plan::{Decision, OwnerState, decide, invalid_namespace};
use super::until_quiet;
use crate::discovery::{ServedResource, test_resource};

fn resource() -> Arc<ServedResource> {
    Arc::new(test_resource("apps/v1", "ReplicaSet", "replicasets"))
}

fn reference(uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: uid.into(),
        uid: uid.into(),
        block_owner_deletion: Some(true),
        controller: None,
    }
}

fn meta(uid: &str, owners: &[&str]) -> ObjectMeta {
    ObjectMeta {
        namespace: Some("default".into()),
        name: Some(uid.into()),
        uid: Some(uid.into()),
        owner_references: Some(owners.iter().map(|owner| reference(owner)).collect()),
        ..ObjectMeta::default()
    }
}

fn node(uid: &str, owners: &[&str]) -> Node {
    Node::new(resource(), meta(uid, owners)).unwrap()
}

fn deleting(uid: &str, finalizer: &str) -> Node {
    let mut meta = meta(uid, &[]);
    meta.deletion_timestamp = serde_json::from_value(json!("2030-01-01T12:00:00Z")).unwrap();
    meta.finalizers = Some(vec![finalizer.into()]);
    Node::new(resource(), meta).unwrap()
}

/// How many dependents an owner waits for.
fn waits(graph: &Graph, owner: &str) -> usize {
    graph.blocking(graph.get(owner).unwrap()).count()
}

fn collect(uid: &str) -> Work {
    Work::Collect(uid.into())
}

#[test]
fn only_kubernetes_own_events_are_no_business_of_the_collector() {
    let table = [("v1", false), ("events.k8s.io/v1", false), ("example.com/v1", true)];
    for (group_version, expected) in table {
        let events = test_resource(group_version, "Event", "events");
        assert_eq!(is_collectable(&events), expected, "{group_version}");
    }
}

#[test]
fn an_object_whose_owner_is_known_needs_no_work() {
    let mut graph = Graph::default();
    assert_eq!(graph.observe(node("owner", &[])), []);
    assert_eq!(graph.observe(node("pod", &["owner"])), []);
    assert_eq!(graph.observe(node("pod", &["owner"])), []);
}

#[test]
fn an_object_that_appears_without_its_owner_is_looked_at() {
    let mut graph = Graph::default();
    assert_eq!(graph.observe(node("pod", &["gone"])), [collect("pod")]);
}

#[test]
fn an_owner_of_the_same_uid_in_another_namespace_does_not_count() {
    let mut graph = Graph::default();
    let mut elsewhere = meta("owner", &[]);
    elsewhere.namespace = Some("other".into());
    graph.observe(Node::new(resource(), elsewhere).unwrap());
    assert!(graph.observe(node("pod", &["owner"])).contains(&collect("pod")));
}

#[test]
fn when_an_owner_goes_its_dependents_are_looked_at() {
    let mut graph = Graph::default();
    graph.observe(node("owner", &[]));
    graph.observe(node("a", &["owner"]));
    graph.observe(node("b", &["owner"]));
    assert_eq!(graph.remove("owner"), [collect("a"), collect("b")]);
    assert_eq!(graph.remove("owner"), []);
}

#[test]
fn a_relist_removes_what_it_does_not_contain() {
    let mut graph = Graph::default();
    graph.observe(node("owner", &[]));
    graph.observe(node("pod", &["owner"]));
    let present = HashSet::from(["pod".into()]);
    assert_eq!(graph.retain(&resource(), &present), [collect("pod")]);
    assert!(graph.get("pod").is_some());
}

#[test]
fn a_relist_in_another_version_is_about_the_same_objects() {
    let newer = Arc::new(test_resource("apps/v2", "ReplicaSet", "replicasets"));
    let mut graph = Graph::default();
    graph.observe(node("owner", &[]));
    graph.observe(node("pod", &["owner"]));
    let present = HashSet::from(["owner".into()]);
    assert_eq!(graph.retain(&newer, &present), []);
    assert!(graph.get("pod").is_none());
    assert_eq!(graph.observe(Node::new(newer, meta("owner", &[])).unwrap()), []);
    assert_eq!(graph.get("owner").unwrap().resource.api.version, "v2");
}

#[test]
fn only_the_server_says_that_an_owner_was_deleted_and_seeing_it_again_refutes_that() {
    let mut graph = Graph::default();
    let pod = node("pod", &["owner"]);
    graph.observe(node("owner", &[]));
    graph.observe(pod.clone());
    graph.remove("owner");
    assert!(!graph.was_deleted(&pod, &reference("owner")), "only no longer seen");
    graph.delete(node("owner", &[]));
    assert!(graph.was_deleted(&pod, &reference("owner")));
    let mut cluster_scoped = pod.clone();
    cluster_scoped.key.namespace = None;
    assert!(!graph.was_deleted(&cluster_scoped, &reference("owner")), "it means another object");
    graph.observe(node("owner", &[]));
    assert!(!graph.was_deleted(&pod, &reference("owner")));
}

#[tokio::test]
async fn a_panic_is_an_error_to_be_tried_again() {
    async fn broken() -> steersman::Result<()> {
        panic!("as a broken attempt does")
    }
    assert!(super::caught(broken()).await.is_err());
    assert!(super::caught(async { Ok(1) }).await.is_ok());
}

#[test]
fn a_foreground_deletion_has_dependents_and_then_the_owner_looked_at() {
    let mut graph = Graph::default();
    graph.observe(node("owner", &[]));
    graph.observe(node("pod", &["owner"]));
    let work = graph.observe(deleting("owner", "foregroundDeletion"));
    assert_eq!(work, [collect("pod"), collect("owner")]);
    assert_eq!(waits(&graph, "owner"), 1);
    assert_eq!(graph.remove("pod"), [collect("owner")]);
    assert_eq!(waits(&graph, "owner"), 0);
}

#[test]
fn an_owner_that_waits_is_looked_at_when_the_last_dependent_has_gone() {
    let mut graph = Graph::default();
    graph.observe(deleting("owner", "foregroundDeletion"));
    for pod in ["a", "b", "c"] {
        graph.observe(node(pod, &["owner"]));
    }
    assert_eq!(graph.remove("a"), []);
    assert_eq!(graph.remove("b"), []);
    assert_eq!(graph.remove("c"), [collect("owner")]);
}

#[test]
fn the_last_of_a_circle_that_begins_to_wait_closes_it() {
    let waiting = |uid: &str, owner: &str| {
        let mut node = deleting(uid, "foregroundDeletion");
        node.owners = vec![reference(owner)];
        node
    };
    let mut graph = Graph::default();
    for (uid, owner) in [("a", "c"), ("b", "a"), ("c", "b"), ("self", "self")] {
        graph.observe(node(uid, &[owner]));
    }
    graph.observe(waiting("a", "c"));
    graph.observe(waiting("b", "a"));
    assert!(["a", "b"].iter().all(|uid| !graph.closes_circle(graph.get(uid).unwrap())));
    graph.observe(waiting("c", "b"));
    assert!(graph.closes_circle(graph.get("c").unwrap()));
    let mut elsewhere = waiting("c", "b");
    elsewhere.key.namespace = Some("other".into());
    graph.observe(elsewhere);
    assert!(!graph.closes_circle(graph.get("a").unwrap()), "it means no owner here");
    graph.observe(waiting("self", "self"));
    assert!(graph.closes_circle(graph.get("self").unwrap()));
}

#[test]
fn an_owner_in_another_namespace_is_reported_whichever_of_the_two_comes_first() {
    let report = Work::Report { dependent: "role".into(), owner: "owner".into() };
    let mut role = node("role", &["owner"]);
    role.key.namespace = None;
    let mut graph = Graph::default();
    graph.observe(node("owner", &[]));
    assert_eq!(graph.observe(role.clone()), [report.clone(), collect("role")]);
    assert_eq!(graph.observe(role.clone()), [], "once");
    let mut graph = Graph::default();
    assert_eq!(graph.observe(role), [collect("role")]);
    assert_eq!(graph.observe(node("owner", &[])), [report]);
    assert_eq!(
        invalid_namespace(&reference("owner"), None),
        "ownerRef [apps/v1/ReplicaSet, namespace: , name: owner, uid: owner] does not exist in \
         namespace \"\""
    );
}

#[test]
fn a_dependent_that_is_disowned_no_longer_blocks_its_owner() {
    let mut graph = Graph::default();
    graph.observe(deleting("owner", "foregroundDeletion"));
    graph.observe(node("pod", &["owner"]));
    assert_eq!(graph.observe(node("pod", &[])), [collect("owner")]);
    assert_eq!(waits(&graph, "owner"), 0);
}

#[test]
fn an_orphaning_deletion_is_work_of_its_own() {
    let mut graph = Graph::default();
    graph.observe(node("owner", &[]));
    graph.observe(node("pod", &["owner"]));
    assert_eq!(graph.observe(deleting("owner", "orphan")), [Work::Orphan("owner".into())]);
}

#[test]
fn what_becomes_of_an_object_depends_on_its_owners() {
    use OwnerState::{Dangling, Solid, Unresolvable, Waiting};
    let background = Decision::Delete(PropagationPolicy::Background);
    let foreground = Decision::Delete(PropagationPolicy::Foreground);
    let disown = |uids: &[&str]| Decision::Disown(uids.iter().map(|uid| (*uid).into()).collect());
    let table: [(&[OwnerState], bool, Decision); 9] = [
        (&[], false, Decision::Keep),
        (&[Solid], false, Decision::Keep),
        (&[Dangling], false, background.clone()),
        (&[Dangling, Dangling], true, background.clone()),
        (&[Solid, Dangling], false, disown(&["1"])),
        (&[Waiting, Solid], true, disown(&["0"])),
        (&[Waiting], false, background),
        (&[Waiting, Dangling], true, foreground),
        (&[Unresolvable], false, Decision::Keep),
    ];
    for (states, has_dependents, expected) in table {
        let owners: Vec<_> = states
            .iter()
            .enumerate()
            .map(|(i, state)| (reference(&i.to_string()), *state))
            .collect();
        let found = decide(&ObjectMeta::default(), &owners, has_dependents);
        assert_eq!(found, expected, "{states:?}");
    }
}

#[test]
fn an_object_that_is_being_deleted_is_left_alone() {
    let owners = [(reference("gone"), OwnerState::Dangling)];
    let deletion_timestamp = serde_json::from_value(json!("2030-01-01T12:00:00Z")).unwrap();
    let meta = ObjectMeta { deletion_timestamp, ..ObjectMeta::default() };
    assert_eq!(decide(&meta, &owners, false), Decision::Keep);
}

/// How long is waited after so many definitions, of which one comes every 50 milliseconds.
async fn waited(definitions: usize) -> u128 {
    let changed = Notify::new();
    let began = Instant::now();
    let come = async {
        let mut often = interval(Duration::from_millis(50));
        for _ in 0..definitions {
            often.tick().await;
            changed.notify_one();
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = until_quiet(&changed) => {}
        () = come => {}
    }
    began.elapsed().as_millis()
}

#[tokio::test(start_paused = true)]
async fn what_is_served_is_asked_for_when_no_more_definitions_come_or_it_takes_too_long() {
    assert_eq!(waited(0).await, 100);
    assert_eq!(waited(11).await, 600);
    assert_eq!(waited(1000).await, 2000);
}

#[test]
fn of_an_object_only_that_is_built_which_is_read() {
    let object: Metadata = serde_json::from_value(json!({
        "kind": "PartialObjectMetadata",
        "metadata": {
            "name": "web-0", "namespace": "default", "uid": "u", "resourceVersion": "7",
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["orphan"],
            "ownerReferences": [reference("set")], "generation": null,
            // Of no use, and not what they should be: nobody looked at them.
            "managedFields": 5, "labels": 6, "annotations": 7,
        },
    }))
    .unwrap();
    let node = Node::new(resource(), object.into_inner()).unwrap();
    assert_eq!((&*node.uid, &*node.key.name), ("u", "web-0"));
    assert_eq!(node.deletion, Deletion::Orphan);
    assert!(node.refers_to("set").is_some());
}
