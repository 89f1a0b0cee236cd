//! Pods that spread.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

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
            world.nodes[place].set_node(std::sync::Arc::new(node(&name, &changed)));
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
    world.objects.services = vec![std::sync::Arc::new(object(json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    })))];
    let found = scores(world);
    assert!(found[0] < found[1] && found[1] == 100 && found[2] == 100, "{found:?}");
}
