//! Room that is made by letting others go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::framework::{Cycle, NodeInfo, Plugin, PodInfo, Points, PostFilter};
use crate::testing::{World, asking, node, object};

fn of(name: &str, cpu: &str, priority: i32) -> Pod {
    let mut pod = asking(name, cpu);
    pod.spec.as_mut().unwrap().priority = Some(priority);
    pod.metadata.labels = Some([("app".to_owned(), name[..1].to_owned())].into());
    pod
}

fn nodes(names: &[&str]) -> World {
    World::of(names.iter().map(|name| node(name, &json!({}))))
}

fn told(help: Result<PostFilter, String>) -> Result<(String, Vec<String>), String> {
    help.map(|help| {
        let victims = help.victims.iter().map(|pod| pod.key.name.to_string()).collect();
        (help.nominated_node.unwrap().to_string(), victims)
    })
}

fn chosen(node: &str, victims: &[&str]) -> Result<(String, Vec<String>), String> {
    Ok((node.to_owned(), victims.iter().map(|it| (*it).to_owned()).collect()))
}

#[test]
fn as_few_and_as_unimportant_as_possible_have_to_go() {
    let mut world = nodes(&["n"]);
    world.put("n", &of("a", "3", 1)).put("n", &of("b", "3", 2)).put("n", &of("c", "1", 0));
    assert_eq!(told(world.help(&of("p", "4", 10))), chosen("n", &["a"]));
    assert_eq!(told(world.help(&of("p", "2", 10))), chosen("n", &["c"]));
    assert_eq!(told(world.help(&of("p", "8", 10))), chosen("n", &["b", "a", "c"]));
}

#[test]
fn who_matters_as_much_stays() {
    let mut world = nodes(&["n"]);
    world.put("n", &of("a", "8", 10));
    let message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
                   preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    assert_eq!(told(world.help(&of("p", "4", 10))), Err(message.to_owned()));
    let message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
                   preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(told(world.help(&of("p", "9", 20))), Err(message.to_owned()));
}

#[test]
fn the_node_is_chosen_where_the_least_is_lost() {
    let best = |on_a: &[(&str, &str, i32)], on_b: &[(&str, &str, i32)]| {
        let mut world = nodes(&["a", "b"]);
        for (name, cpu, priority) in on_a {
            world.put("a", &of(name, cpu, *priority));
        }
        for (name, cpu, priority) in on_b {
            world.put("b", &of(name, cpu, *priority));
        }
        told(world.help(&of("p", "8", 10))).unwrap().0
    };
    assert_eq!(best(&[("a1", "8", 5)], &[("b1", "8", 3)]), "b"); // the lower top
    assert_eq!(best(&[("a1", "4", 3), ("a2", "4", 2)], &[("b1", "4", 3), ("b2", "4", 1)]), "b");
    assert_eq!(best(&[("a1", "4", 3), ("a2", "4", 0)], &[("b1", "8", 3)]), "b"); // fewer
}

#[test]
fn of_equal_victims_those_go_that_started_last_or_not_at_all() {
    let started = |name: &str, at: &str| {
        let mut pod = of(name, "8", 3);
        pod.status = Some(object(json!({"startTime": at})));
        pod
    };
    let early = started("x1", "2030-01-01T00:00:00Z");
    let late = started("y1", "2030-01-02T00:00:00Z");
    let never = of("z1", "8", 3);
    for (on_a, on_b, expected) in
        [(&early, &late, "b"), (&late, &early, "a"), (&late, &never, "b"), (&never, &late, "a")]
    {
        let mut world = nodes(&["a", "b"]);
        world.put("a", on_a).put("b", on_b);
        assert_eq!(told(world.help(&of("p", "8", 10))).unwrap().0, expected);
    }
}

fn budget(app: &str, allowed: i32) -> Value {
    json!({
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
                   "expectedPods": 1},
    })
}

#[test]
fn whom_a_budget_protects_goes_only_if_nobody_else_can() {
    let mut world = nodes(&["x", "y"]);
    world.put("x", &of("a1", "8", 0)).put("y", &of("b1", "8", 5));
    world.objects.budgets = vec![Arc::new(object(budget("a", 0)))];
    assert_eq!(told(world.help(&of("p", "8", 10))), chosen("y", &["b1"]));
    world.objects.budgets = vec![Arc::new(object(budget("a", 1)))];
    assert_eq!(told(world.help(&of("p", "8", 10))), chosen("x", &["a1"]));
    // On one node the protected one is put back first, although the other matters more.
    let mut world = nodes(&["x"]);
    world.put("x", &of("a1", "4", 0)).put("x", &of("b1", "4", 5));
    world.objects.budgets = vec![Arc::new(object(budget("a", 0)))];
    assert_eq!(told(world.help(&of("p", "4", 10))), chosen("x", &["b1"]));
}

#[test]
fn who_must_not_preempt_and_who_has_done_so_waits() {
    let mut world = nodes(&["n"]);
    world.put("n", &of("a", "8", 1));
    let mut pod = of("p", "8", 10);
    pod.spec.as_mut().unwrap().preemption_policy = Some("Never".into());
    let message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to \
                   deallocate, preemption: not eligible due to \
                   preemptionPolicy=Never.";
    assert_eq!(told(world.help(&pod)), Err(message.to_owned()));
    let mut going = of("g", "8", 1);
    going.metadata.deletion_timestamp = Some(object(json!("2030-01-01T00:00:00Z")));
    going.status = Some(object(json!({"conditions": [{
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]})));
    let mut world = nodes(&["n"]);
    world.put("n", &going);
    let mut pod = of("p", "8", 10);
    pod.status = Some(object(json!({"nominatedNodeName": "n"})));
    let message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to \
                   deallocate, preemption: not eligible due to a \
                   terminating pod on the nominated node.";
    assert_eq!(told(world.help(&pod)), Err(message.to_owned()));
}

#[test]
fn room_that_is_made_for_a_pod_is_not_given_to_one_that_matters_less() {
    let mut world = nodes(&["n"]);
    let waiting = Arc::new(PodInfo::of(&of("w", "6", 5)));
    world.nominator.nominate(waiting, &"n".into());
    assert!(!world.fits(&of("p", "4", 1)));
    assert!(world.fits(&of("p", "4", 9)));
    assert!(world.fits(&of("w", "6", 5)));
}

/// Counts who is taken away from a node to see whether that helps.
#[derive(Default)]
struct Counting(Arc<AtomicUsize>);

impl Plugin for Counting {
    fn name(&self) -> &'static str {
        "Counting"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER
    }

    fn remove_pod(&self, _: &mut Cycle<'_>, _: &PodInfo, _: &NodeInfo) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn where_room_is_made_for_others_already_nothing_is_tried_out() {
    let names: Vec<String> = (0..200).map(|number| format!("n{number}")).collect();
    let mut world = nodes(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let tried = Arc::new(AtomicUsize::new(0));
    world.plugins = vec![Arc::new(Counting(Arc::clone(&tried)))];
    for name in &names {
        world.put(name, &of(&format!("v-{name}"), "8", 0));
    }
    for name in &names[..150] {
        let waiting = of(&format!("w-{name}"), "8", 10);
        world.nominator.nominate(Arc::new(PodInfo::of(&waiting)), &name.as_str().into());
    }
    let (node, _) = told(world.help(&of("p", "8", 10))).unwrap();
    assert!(names[150..].contains(&node), "{node}");
    // One Pod is taken away from each of 50 nodes, and once more because it cannot be put back.
    assert_eq!(tried.load(Ordering::Relaxed), 100);
    for name in &names[150..] {
        let waiting = of(&format!("w-{name}"), "8", 10);
        world.nominator.nominate(Arc::new(PodInfo::of(&waiting)), &name.as_str().into());
    }
    let message = "0/200 nodes are available: 200 Insufficient cpu. no new claims to deallocate, \
                   preemption: 0/200 nodes are available: 200 Insufficient cpu.";
    assert_eq!(told(world.help(&of("p", "8", 10))), Err(message.to_owned()));
}
