//! What is remembered of nodes for Pods that ask for the same, and when it is not any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use steersman::random;

use crate::framework::{
    Cycle, Failure, Helped, NodeInfo, Plugin, PodInfo, Points, Profile, Refusal, Snapshot,
};
use crate::testing::{World, asking, node, object};

/// Counts how often somebody asks about a node, and for its score, and who is taken away from one to
/// see whether that helps.
#[derive(Clone, Default)]
struct Counting {
    asked: Arc<AtomicUsize>,
    scored: Arc<AtomicUsize>,
    removed: Arc<AtomicUsize>,
}

impl Counting {
    /// How often since the last time: asked, scored, taken away.
    fn take(&self) -> [usize; 3] {
        [&self.asked, &self.scored, &self.removed].map(|count| count.swap(0, Ordering::Relaxed))
    }
}

impl Plugin for Counting {
    fn name(&self) -> &'static str {
        "Counting"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER | Points::SCORE
    }

    fn is_local(&self) -> bool {
        true
    }

    fn filter(&self, _: &Cycle<'_>, _: &NodeInfo) -> Result<(), Refusal> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn scores_locally(&self, _: &Cycle<'_>) -> bool {
        true
    }

    fn score(&self, _: &Cycle<'_>, _: &NodeInfo) -> i64 {
        self.scored.fetch_add(1, Ordering::Relaxed);
        0
    }

    fn remove_pod(&self, _: &mut Cycle<'_>, _: &PodInfo, _: &NodeInfo) {
        self.removed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Nodes that are followed by one snapshot, as the scheduler does.
struct Followed {
    world: World,
    profile: Arc<Profile>,
    snapshot: Snapshot,
}

impl Followed {
    fn new(world: World) -> Self {
        let (profile, snapshot) = (world.profile(), world.snapshot());
        Self { world, profile, snapshot }
    }

    /// Something happens on a node.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut NodeInfo)) {
        change(&mut self.world.nodes[at]);
        self.snapshot.replace(&Arc::new(self.world.nodes[at].clone()));
    }

    /// What is decided about a Pod, from what is remembered.
    fn decide(&self, pod: &Pod) -> String {
        self.decide_in(&self.snapshot, pod)
    }

    /// The same by somebody who remembers nothing.
    fn decide_anew(&self, pod: &Pod) -> String {
        self.decide_in(&self.world.snapshot(), pod)
    }

    fn decide_in(&self, snapshot: &Snapshot, pod: &Pod) -> String {
        random::seed(7);
        self.world.attempt_in(&self.profile, snapshot, pod, |profile, mut cycle| {
            match profile.schedule(&mut cycle, &mut 0) {
                Ok(node) => format!("on {}", node.name()),
                Err(Failure::Fit(mut error)) => match profile.post_filter(&cycle, &mut error) {
                    Helped::Yes(help) => {
                        let victims: Vec<&str> =
                            help.victims.iter().map(|pod| &*pod.key.name).collect();
                        format!("{:?} for {victims:?}", help.nominated_node)
                    }
                    _ => error.message(),
                },
                Err(other) => format!("{other:?}"),
            }
        })
    }
}

fn of(name: &str, cpu: &str, priority: i32) -> Pod {
    let mut pod = asking(name, cpu);
    pod.spec.as_mut().unwrap().priority = Some(priority);
    pod.metadata.labels = Some([("app".to_owned(), "a".to_owned())].into());
    pod
}

fn followed(nodes: usize, counting: &Counting) -> Followed {
    let mut world = World::of((0..nodes).map(|number| node(&format!("n{number}"), &json!({}))));
    world.plugins = vec![Arc::new(counting.clone())];
    Followed::new(world)
}

#[test]
fn of_pods_that_ask_for_the_same_only_the_first_asks_about_nodes_that_stay_as_they_are() {
    let counting = Counting::default();
    let mut followed = followed(90, &counting);
    followed.decide(&of("first", "1", 0));
    assert_eq!(counting.take(), [90, 90, 0]);
    for number in 0..10 {
        followed.change(number, |node| {
            node.add_pod(Arc::new(PodInfo::of(&of(&format!("p{number}"), "1", 0))));
        });
        followed.decide(&of("next", "1", 0));
        assert_eq!(counting.take(), [1, 1, 0], "{number}");
    }
    followed.decide(&of("other", "2", 0));
    assert_eq!(counting.take(), [90, 90, 0]);
    followed.decide(&of("like the first", "1", 0));
    assert_eq!(counting.take(), [0, 0, 0]);
}

#[test]
fn a_pod_that_must_not_be_near_to_others_is_asked_about_only_by_who_looks_further() {
    let counting = Counting::default();
    let followed = followed(50, &counting);
    let mut apart = of("p", "1", 0);
    let term = json!({"labelSelector": {"matchLabels": {"app": "a"}},
                      "topologyKey": "kubernetes.io/hostname"});
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    apart.spec.as_mut().unwrap().affinity = Some(object(json!({"podAntiAffinity": required})));
    followed.decide(&apart);
    followed.decide(&apart);
    // The plug-in of the test comes after those that are not local.
    assert_eq!(counting.take(), [100, 50, 0]);
}

#[test]
fn who_has_to_go_is_tried_out_once_for_pods_that_ask_for_the_same() {
    let counting = Counting::default();
    let mut followed = followed(50, &counting);
    for number in 0..50 {
        followed.change(number, |node| {
            node.add_pod(Arc::new(PodInfo::of(&of(&format!("v{number}"), "8", 0))));
        });
    }
    let first = followed.decide(&of("p", "8", 10));
    // Each is taken away, and once more because it cannot be put back.
    assert_eq!(counting.take()[2], 100);
    assert_eq!(followed.decide(&of("q", "8", 10)), first);
    assert_eq!(counting.take(), [0, 0, 0]);
    followed.change(3, |node| assert!(node.remove_pod("v3")));
    followed.change(3, |node| node.add_pod(Arc::new(PodInfo::of(&of("w", "8", 1)))));
    followed.decide(&of("r", "8", 10));
    assert_eq!(counting.take()[2], 2);

    // Where room is being made for the one, there is none for the other.
    let nominated = Arc::new(PodInfo::of(&of("p", "8", 10)));
    followed.world.nominator.nominate(nominated, &"n9".into());
    let told = followed.decide(&of("s", "8", 10));
    assert!(!told.contains("\"n9\""), "{told}");
    assert_eq!(counting.take()[2], 0);

    let budget = json!({
        "metadata": {"name": "b", "namespace": "default", "resourceVersion": "7"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
                   "expectedPods": 1},
    });
    followed.world.objects.budgets = vec![Arc::new(object(budget))];
    followed.decide(&of("t", "8", 10));
    assert_eq!(counting.take()[2], 98);
}

/// Chance that follows from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    /// A Pod of few kinds.
    fn pod(&mut self, name: &str) -> Pod {
        let cpu = ["1", "3", "5", "9"][self.below(4)];
        let mut pod = of(name, cpu, [0, 5, 10][self.below(3)]);
        let spec = pod.spec.as_mut().unwrap();
        if self.below(3) == 0 {
            spec.node_selector = Some([("disk".to_owned(), "ssd".to_owned())].into());
        }
        if self.below(4) == 0 {
            spec.tolerations = Some(object(json!([{"key": "own", "operator": "Exists"}])));
        }
        if self.below(4) == 0 {
            let ports = json!([{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]);
            spec.containers = object(ports);
        }
        if self.below(5) == 0 {
            let term = json!({"labelSelector": {"matchLabels": {"app": "a"}},
                              "topologyKey": "kubernetes.io/hostname"});
            let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
            spec.affinity = Some(object(json!({"podAntiAffinity": required})));
        }
        pod
    }

    fn node(&mut self, name: &str) -> Value {
        let taints = match self.below(4) {
            0 => json!([{"key": "own", "effect": "NoSchedule"}]),
            _ => json!([]),
        };
        let disk = ["ssd", "hdd"][self.below(2)];
        json!({
            "metadata": {"labels": {"kubernetes.io/hostname": name, "disk": disk}},
            "spec": {"taints": taints, "unschedulable": self.below(8) == 0},
        })
    }
}

/// The name of the Pod that is decided upon.
const DECIDED: &str = "decided";

/// Lets something happen in a cluster.
fn happen(followed: &mut Followed, dice: &mut Dice, step: usize) {
    let at = dice.below(followed.world.nodes.len());
    let name = format!("n{at}");
    match dice.below(10) {
        0..5 => {
            let pod = dice.pod(&format!("p{step}"));
            followed.change(at, |node| node.add_pod(Arc::new(PodInfo::of(&pod))));
        }
        5..7 => followed.change(at, |node| {
            if let Some(pod) = node.pods.first().cloned() {
                node.remove_pod(&pod.uid);
            }
        }),
        7 => {
            let new = node(&name, &dice.node(&name));
            followed.change(at, |node| node.set_node(Arc::new(new)));
        }
        8 => {
            // Sometimes it is the very one that is decided upon.
            let who = if dice.below(3) == 0 { DECIDED.to_owned() } else { format!("w{step}") };
            let pod = Arc::new(PodInfo::of(&dice.pod(&who)));
            followed.world.nominator.nominate(pod, &name.as_str().into());
        }
        _ => {
            let nominated = followed.world.nominator.on(&name).first().cloned();
            if let Some(pod) = nominated {
                followed.world.nominator.remove(&pod.uid);
            }
        }
    }
}

#[test]
fn who_remembers_decides_as_who_does_not() {
    for seed in 1..9 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut followed = followed(12, &Counting::default());
        for step in 0..400 {
            happen(&mut followed, &mut dice, step);
            let pod = dice.pod(DECIDED);
            let (told, anew) = (followed.decide(&pod), followed.decide_anew(&pod));
            assert_eq!(told, anew, "seed {seed}, step {step}");
        }
    }
}
