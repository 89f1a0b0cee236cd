//! Pods that want to be near to others, or far from them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use serde_json::{Value, json};

use crate::framework::{Action, Before, ClusterEvent, Hint, Object, Plugin, PodInfo, Resource};
use crate::plugins::InterPodAffinity;
use crate::testing::{World, node, nowhere, object, on, pod};

fn zoned(name: &str, zone: &str) -> Node {
    node(name, &json!({"metadata": {"labels": {"zone": zone}}}))
}

fn term(app: &str, key: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})
}

fn app(name: &str, app: &str, affinity: &Value) -> Pod {
    pod(name, &json!({"metadata": {"labels": {"app": app}}, "spec": {"affinity": affinity}}))
}

fn near(term: &Value) -> Value {
    json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
}

fn far(term: &Value) -> Value {
    json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
}

fn zones() -> World {
    World::of([zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b")])
}

#[test]
fn a_pod_goes_near_to_those_that_it_must_be_near_to() {
    let mut world = zones();
    let wants = app("p", "web", &near(&term("db", "zone")));
    let message = "0/3 nodes are available: 3 node(s) didn't match pod affinity rules.";
    assert_eq!(world.place(&wants), nowhere(message));
    world.put("b1", &app("db", "db", &json!({})));
    assert_eq!(world.place(&wants), on("b1"));
}

#[test]
fn the_first_of_pods_that_must_be_together_goes_anywhere() {
    let together = near(&term("web", "zone"));
    let mut world = zones();
    assert!(world.fits(&app("first", "web", &together)));
    world.put("b1", &app("first", "web", &together));
    assert_eq!(world.place(&app("second", "web", &together)), on("b1"));
}

#[test]
fn a_pod_stays_away_from_those_that_it_must_not_be_near_to_and_they_from_it() {
    let alone = far(&term("web", "zone"));
    let mut world = zones();
    world.put("a1", &app("x", "web", &json!({})));
    assert_eq!(world.place(&app("p", "other", &alone)), on("b1"));
    world.put("b1", &app("y", "web", &json!({})));
    let message = "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.";
    assert_eq!(world.place(&app("p", "other", &alone)), nowhere(message));
    let mut world = zones();
    world.put("a1", &app("x", "other", &alone)).put("b1", &app("y", "other", &alone));
    let message = "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity \
                   rules.";
    assert_eq!(world.place(&app("p", "web", &json!({}))), nowhere(message));
    assert!(world.fits(&app("p", "db", &json!({}))));
}

#[test]
fn namespaces_are_those_of_the_pod_unless_named_or_selected() {
    let mut world = zones();
    let mut elsewhere = app("db", "db", &json!({}));
    elsewhere.metadata.namespace = Some("other".into());
    world.put("b1", &elsewhere);
    let namespace =
        |name: &str| Arc::new(object(json!({"metadata": {"name": name, "labels": {"n": name}}})));
    world.objects.namespaces = vec![namespace("other"), namespace("default")];
    for (change, expected) in [
        (json!({}), false),
        (json!({"namespaces": ["other"]}), true),
        (json!({"namespaceSelector": {"matchLabels": {"n": "other"}}}), true),
        (json!({"namespaceSelector": {"matchLabels": {"n": "default"}}}), false),
        (json!({"namespaceSelector": {}}), true),
    ] {
        let mut term = term("db", "zone");
        term.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let found = world.fits(&app("p", "web", &near(&term)));
        assert_eq!(found, expected, "{change}");
    }
}

#[test]
fn what_pods_would_like_counts_by_weight_in_both_directions() {
    let likes = |kind: &str, weight: i32, of: &str| {
        let preferred = json!([{"weight": weight, "podAffinityTerm": term(of, "zone")}]);
        json!({kind: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
    };
    let scores = |there: &Pod, pod: &Pod| {
        let mut world = zones();
        world.put("b1", there);
        world.scores_by("InterPodAffinity", &json!({}), pod)
    };
    let plain = |name: &str, of: &str| app(name, of, &json!({}));
    let web = app("p", "web", &likes("podAffinity", 5, "db"));
    assert_eq!(scores(&plain("x", "db"), &web), [0, 0, 100]);
    let web = app("p", "web", &likes("podAntiAffinity", 5, "db"));
    assert_eq!(scores(&plain("x", "db"), &web), [100, 100, 0]);
    let there = app("x", "db", &likes("podAffinity", 5, "web"));
    assert_eq!(scores(&there, &plain("p", "web")), [0, 0, 100]);
    let there = app("x", "db", &near(&term("web", "zone")));
    assert_eq!(scores(&there, &plain("p", "web")), [0, 0, 100]);
    assert_eq!(scores(&there, &plain("p", "cache")), [0, 0, 0]);
}

#[test]
fn another_pod_wakes_whom_it_is_near_enough_to_now_or_no_longer_in_the_way_of() {
    let by = |key: &str, value: &str| json!({"labelSelector": {"matchLabels": {key: value}}, "topologyKey": "zone"});
    let wanting = |kind: &str| {
        let terms = [by("app", "db"), by("tier", "x")];
        let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
        pod("p", &json!({"spec": {"affinity": {kind: terms}}}))
    };
    let (near, far) = (wanting("podAffinity"), wanting("podAntiAffinity"));
    let of = |labels: &Value| {
        let labelled = pod("x", &json!({"metadata": {"labels": labels}}));
        (!labels.is_null()).then(|| Arc::new(PodInfo::of(&labelled)))
    };
    let (none, plain) = (json!(null), json!({}));
    let (db, x, both) =
        (json!({"app": "db"}), json!({"tier": "x"}), json!({"app": "db", "tier": "x"}));
    for (pod, old, new, expected) in [
        (&near, &none, &db, Hint::Skip),
        (&near, &none, &both, Hint::Queue),
        (&near, &db, &both, Hint::Queue),
        (&near, &both, &db, Hint::Skip),
        (&near, &both, &none, Hint::Skip),
        (&far, &both, &db, Hint::Queue),
        (&far, &db, &both, Hint::Skip),
        (&far, &x, &none, Hint::Queue),
        (&far, &plain, &none, Hint::Skip),
        (&far, &none, &plain, Hint::Skip),
    ] {
        let object = Object::Pod(Before { old: of(old), new: of(new) });
        let action = Action::POD_LABEL;
        let event = ClusterEvent { resource: Resource::AssignedPod, action, object };
        assert_eq!(InterPodAffinity::default().hint(pod, &event), expected, "{old} {new}");
    }
}

#[test]
fn a_namespace_with_other_labels_wakes_whom_it_concerns() {
    let namespace = |name: &str, team: &str| -> Option<Arc<Namespace>> {
        let metadata = json!({"name": name, "labels": {"team": team}});
        Some(Arc::new(object(json!({"metadata": metadata}))))
    };
    let wanting = |kind: &str| {
        let term = json!({"topologyKey": "zone", "labelSelector": {},
                          "namespaceSelector": {"matchLabels": {"team": "a"}}});
        let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        pod("p", &json!({"spec": {"affinity": {kind: terms}}}))
    };
    let (near, far) = (wanting("podAffinity"), wanting("podAntiAffinity"));
    let plain = pod("p", &json!({}));
    let plugin = InterPodAffinity::default();
    for (pod, name, old, new, expected) in [
        (&near, "x", "b", "a", Hint::Queue),
        (&near, "x", "a", "b", Hint::Skip),
        (&near, "x", "a", "a", Hint::Skip),
        (&far, "x", "a", "b", Hint::Queue),
        (&far, "x", "b", "a", Hint::Skip),
        (&plain, "x", "a", "b", Hint::Skip),
        (&plain, "default", "a", "b", Hint::Queue),
    ] {
        let change = Before { old: namespace(name, old), new: namespace(name, new) };
        let event = ClusterEvent {
            resource: Resource::Namespace,
            action: Action::OTHER_UPDATE,
            object: Object::Namespace(change),
        };
        assert!(event.concerns(plugin.interests()));
        assert_eq!(plugin.hint(pod, &event), expected, "{name} {old} {new} {:?}", pod.spec);
    }
}
