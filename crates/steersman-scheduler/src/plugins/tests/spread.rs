//! Pods that spread.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use crate::framework::{Action, Before, ClusterEvent, Hint, Object, Plugin, PodInfo, Resource};
use crate::plugins::PodTopologySpread;
use crate::testing::{World, node, nowhere, object, on, pod};

fn zoned(name: &str, zone: &str) -> Node {
    node(name, &json!({"metadata": {"labels": {"zone": zone}}}))
}

fn web(name: &str, constraints: &[Value]) -> Pod {
    pod(
        name,
        &json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"topologySpreadConstraints": constraints},
        }),
    )
}

fn constraint(key: &str, when: &str, change: &Value) -> Value {
    let mut constraint = json!({
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    });
    constraint.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    constraint
}

/// Zones a and b with two nodes each, and so many Pods on each of the four.
fn zones(pods: [usize; 4]) -> World {
    let names = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")];
    let mut world = World::of(names.map(|(name, zone)| zoned(name, zone)));
    for ((node, _), count) in names.into_iter().zip(pods) {
        for number in 0..count {
            world.put(node, &web(&format!("{node}-{number}"), &[]));
        }
    }
    world
}

#[test]
fn a_zone_has_at_most_so_many_more_than_another() {
    let spread = |change: Value| web("p", &[constraint("zone", "DoNotSchedule", &change)]);
    let plain = || spread(json!({}));
    assert_eq!(zones([1, 1, 1, 0]).place(&plain()), on("b2"));
    let message = "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) didn't match pod topology \
                   spread constraints.";
    let mut full = zones([0, 1, 0, 0]);
    for node in &mut full.nodes[2..] {
        node.requested.add(&node.allocatable.clone());
    }
    let mut asking = plain();
    asking.spec.as_mut().unwrap().containers =
        crate::testing::asking("p", "1").spec.unwrap().containers;
    assert_eq!(full.place(&asking), nowhere(message));
    assert!(zones([2, 0, 0, 0]).fits(&spread(json!({"maxSkew": 3}))));
    // With fewer domains than wanted, the fewest is nothing.
    assert!(zones([0, 0, 0, 0]).fits(&spread(json!({"minDomains": 3}))));
    assert!(!zones([1, 0, 1, 0]).fits(&spread(json!({"minDomains": 3}))));
}

#[test]
fn a_node_without_the_label_is_none_of_the_domains() {
    let pod = web("p", &[constraint("rack", "DoNotSchedule", &json!({}))]);
    let message = "0/4 nodes are available: 4 node(s) didn't match pod topology spread constraints \
                   (missing required label).";
    assert_eq!(zones([0; 4]).place(&pod), nowhere(message));
}

#[test]
fn nodes_that_a_pod_cannot_use_count_unless_they_are_left_out() {
    let tainted = |policy: &str| {
        let mut world = zones([0, 0, 1, 1]);
        let taint = json!({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}});
        for (place, zone) in [(0, "a"), (1, "a")] {
            let mut changed = taint.clone();
            changed["metadata"] = json!({"labels": {"zone": zone}});
            let name = world.nodes[place].name().to_owned();
            world.nodes[place].set_node(Arc::new(node(&name, &changed)));
        }
        let constraint = constraint("zone", "DoNotSchedule", &json!({"nodeTaintsPolicy": policy}));
        world.fits(&web("p", &[constraint]))
    };
    assert!(!tainted("Ignore"));
    assert!(tainted("Honor"));
}

#[test]
fn label_keys_tell_revisions_apart() {
    let mut old = web("old", &[]);
    old.metadata.labels.as_mut().unwrap().insert("rev".into(), "1".into());
    let mut world = zones([0; 4]);
    world.put("a1", &old).put("a2", &web("other", &[]));
    let keys = json!({"matchLabelKeys": ["rev"]});
    let mut new = web("p", &[constraint("zone", "DoNotSchedule", &keys)]);
    new.metadata.labels.as_mut().unwrap().insert("rev".into(), "2".into());
    assert!(world.fits(&new));
}

#[test]
fn domains_with_fewer_pods_are_better() {
    let zone = web("p", &[constraint("zone", "ScheduleAnyway", &json!({}))]);
    let scores = |pods, pod: &Pod| zones(pods).scores_by("PodTopologySpread", &json!({}), pod);
    assert_eq!(scores([0; 4], &zone), [100; 4]);
    // Two and one Pods, each worth ln 4: 3 and 1 rounded.
    assert_eq!(scores([1, 1, 1, 0], &zone), [33, 33, 100, 100]);
    let host = web("p", &[constraint("kubernetes.io/hostname", "ScheduleAnyway", &json!({}))]);
    // Each Pod is worth ln 6, which is 1.79.
    assert_eq!(scores([2, 1, 0, 0], &host), [0, 50, 100, 100]);
}

#[test]
fn pods_of_a_service_spread_by_default() {
    let mut world = zones([3, 0, 0, 0]);
    let plain = web("p", &[]);
    let scores = |world: World| world.scores_by("PodTopologySpread", &json!({}), &plain);
    assert_eq!(scores(zones([3, 0, 0, 0])), [0; 4]); // nobody says what belongs together
    world.objects.services = vec![Arc::new(object(json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    })))];
    let found = scores(world);
    assert!(found[0] < found[1] && found[1] == 100 && found[2] == 100, "{found:?}");
}

fn hint(pod: &Pod, resource: Resource, action: Action, object: Object) -> Hint {
    let event = ClusterEvent { resource, action, object };
    let plugin = PodTopologySpread::default();
    assert!(event.concerns(plugin.interests()));
    plugin.hint(pod, &event)
}

#[test]
fn another_pod_wakes_whom_it_is_counted_for_now_or_no_more() {
    let by = |key: &str| {
        let selector = json!({"labelSelector": {"matchLabels": {key: "x"}}});
        constraint("zone", "DoNotSchedule", &selector)
    };
    let spread = web("p", &[by("a"), by("b")]);
    let (none, a, b) = (json!({}), json!({"a": "x"}), json!({"b": "x"}));
    for (namespace, old, new, expected) in [
        ("default", Some(&a), Some(&b), Hint::Queue),
        ("default", Some(&a), Some(&a), Hint::Skip),
        ("default", Some(&none), Some(&b), Hint::Queue),
        ("default", None, Some(&a), Hint::Queue),
        ("default", Some(&none), None, Hint::Skip),
        ("other", None, Some(&a), Hint::Skip),
    ] {
        let of = |labels: &Value| {
            let metadata = json!({"namespace": namespace, "labels": labels});
            Arc::new(PodInfo::of(&pod("x", &json!({"metadata": metadata}))))
        };
        let object = Object::Pod(Before { old: old.map(of), new: new.map(of) });
        let found = hint(&spread, Resource::AssignedPod, Action::POD_LABEL, object);
        assert_eq!(found, expected, "{namespace} {old:?} {new:?}");
    }
}

#[test]
fn a_toleration_helps_where_taints_say_which_nodes_count() {
    for (policy, expected) in [("Honor", Hint::Queue), ("Ignore", Hint::Skip)] {
        let policy = json!({"nodeTaintsPolicy": policy});
        let pod = web("p", &[constraint("zone", "DoNotSchedule", &policy)]);
        let own = Some(Arc::new(PodInfo::of(&pod)));
        let object = Object::Pod(Before { old: own.clone(), new: own });
        let found = hint(&pod, Resource::UnscheduledPod, Action::POD_TOLERATION, object);
        assert_eq!(found, expected, "{policy}");
    }
}

#[test]
fn a_node_wakes_whom_its_domains_or_taints_concern() {
    let pod = web("p", &[constraint("zone", "DoNotSchedule", &json!({}))]);
    let of = |labels: &Value, taint: &str| {
        let taints = json!([{"key": taint, "effect": "NoSchedule"}]);
        let change = json!({"metadata": {"labels": labels}, "spec": {"taints": taints}});
        Some(Arc::new(node("n", &change)))
    };
    let (none, a, b) = (json!({}), json!({"zone": "a"}), json!({"zone": "b"}));
    let other = json!({"zone": "a", "disk": "ssd"});
    for (old, new, expected) in [
        (None, of(&a, "x"), Hint::Queue),
        (None, of(&none, "x"), Hint::Skip),
        (of(&a, "x"), None, Hint::Queue),
        (of(&none, "x"), of(&a, "x"), Hint::Queue),
        (of(&a, "x"), of(&none, "x"), Hint::Queue),
        (of(&a, "x"), of(&b, "x"), Hint::Queue),
        (of(&a, "x"), of(&a, "y"), Hint::Queue),
        (of(&a, "x"), of(&other, "x"), Hint::Skip),
        (of(&none, "x"), of(&none, "y"), Hint::Skip),
    ] {
        let object = Object::Node(Before { old: old.clone(), new: new.clone() });
        let found = hint(&pod, Resource::Node, Action::NODE_LABEL, object);
        assert_eq!(found, expected, "{old:?} {new:?}");
    }
}
