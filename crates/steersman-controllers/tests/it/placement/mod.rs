//! Nodes and Pods come, go and change as a seed says. No Pod waits that a slow [reference] could
//! place, and none is where the reference would not have put it. And with faults, lost nodes and several
//! Deployments at once: nothing is bound twice or beyond what a node has, by what the store was written.
//!
//! `STEERSMAN_SEED=7` runs one seed only; `cargo xtask soak` sweeps over many.

mod log;
mod reference;

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use steersman::{ListOptions, Manager};
use steersman_scheduler::Scheduler;
use steersman_testkit::{Cluster, Fault, Faults, Settings, run_with};

use crate::objects::{deployment, object};
use log::Bindings;
use reference::{Reference, name};

/// Seeds and steps in the tests.
const SEEDS: u64 = 3;
const STEPS: u64 = 60;
/// Longer than any Pod backs off, and shorter than it waits without a reason.
const SETTLED: Duration = Duration::from_secs(15);

fn seeds(few: u64) -> impl Iterator<Item = u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match number("STEERSMAN_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("STEERSMAN_SEEDS").unwrap_or(few),
    }
}

/// Chance that follows from a seed.
struct Dice(StdRng);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.next_u64() % limit.max(1) as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

#[test]
fn no_pod_waits_that_could_run_and_none_is_where_it_could_not() {
    for seed in seeds(SEEDS) {
        let which = "kube-scheduler".parse().unwrap();
        let settings = Settings { nodes: 0, which, seed, ..Settings::default() };
        run_with(settings, |cluster| async move {
            let mut scene = Scene { cluster, dice: Dice(StdRng::seed_from_u64(seed)), made: 0 };
            for step in 0..STEPS {
                let before = scene.look().await;
                let what = scene.change(&before).await;
                scene.cluster.advance(SETTLED).await;
                let after = scene.look().await;
                check(&before, &after, &format!("STEERSMAN_SEED={seed} step {step}: {what}"));
            }
        });
    }
}

/// What the API server has.
struct State {
    nodes: Vec<Value>,
    pods: Vec<Value>,
}

impl State {
    /// The Pods that have a node, or have none.
    fn pods(&self, placed: bool) -> Vec<Value> {
        let is_placed = |pod: &&Value| pod["spec"]["nodeName"].is_string() == placed;
        self.pods.iter().filter(is_placed).cloned().collect()
    }
}

/// Compares with the reference.
fn check(before: &State, after: &State, told: &str) {
    let reference = Reference { nodes: after.nodes.clone(), placed: after.pods(true) };
    for pod in after.pods(false) {
        let nodes = reference.feasible(&pod);
        assert!(nodes.is_empty(), "{told}: {} waits, and could go to {nodes:?}", name(&pod));
    }
    let had: BTreeSet<String> = before.pods(true).iter().map(name).collect();
    let new: Vec<Value> =
        after.pods(true).into_iter().filter(|it| !had.contains(&name(it))).collect();
    // With several, each was placed before others that the reference sees.
    if let [pod] = &new[..] {
        let placed = after.pods(true).into_iter().filter(|it| name(it) != name(pod)).collect();
        let nodes = Reference { nodes: after.nodes.clone(), placed }.feasible(pod);
        let node = pod["spec"]["nodeName"].as_str().unwrap();
        assert!(nodes.contains(node), "{told}: {} is on {node}, not on {nodes:?}", name(pod));
    }
}

/// A cluster in which things happen.
struct Scene {
    cluster: Cluster,
    dice: Dice,
    /// How many objects were made so far.
    made: usize,
}

impl Scene {
    async fn look(&self) -> State {
        let all = ListOptions::default();
        let nodes: Vec<Node> = self.cluster.client().list(&all).await.unwrap();
        let pods: Vec<Pod> = self.cluster.client().list(&all).await.unwrap();
        State {
            nodes: nodes.iter().map(|it| serde_json::to_value(it).unwrap()).collect(),
            pods: pods.iter().map(|it| serde_json::to_value(it).unwrap()).collect(),
        }
    }

    /// Lets something happen, and tells what.
    async fn change(&mut self, state: &State) -> String {
        self.made += 1;
        let placed = state.pods(true);
        match self.dice.below(100) {
            0..50 => self.new_pod().await,
            50..58 => self.new_node().await,
            58..72 if !placed.is_empty() => {
                let pod = name(&placed[self.dice.below(placed.len())]);
                self.delete_pod(&pod).await;
                format!("{pod} goes")
            }
            72..80 if !placed.is_empty() => {
                let pod = name(&placed[self.dice.below(placed.len())]);
                let labels = json!({"metadata": {"labels": {"app": self.dice.pick(&["a", "b"])}}});
                let client = self.cluster.client();
                client.patch::<Pod, _>(pod.as_str(), &Patch::Merge(&labels)).await.unwrap();
                format!("{pod} becomes {labels}")
            }
            80..84 if state.nodes.len() > 1 => {
                let node = name(&state.nodes[self.dice.below(state.nodes.len())]);
                let client = self.cluster.client();
                client.delete::<Node>(node.as_str(), &DeleteParams::default()).await.unwrap();
                for pod in placed.iter().filter(|pod| pod["spec"]["nodeName"] == node) {
                    self.delete_pod(&name(pod)).await;
                }
                format!("{node} goes")
            }
            _ if !state.nodes.is_empty() => {
                let node = name(&state.nodes[self.dice.below(state.nodes.len())]);
                self.change_node(&node).await
            }
            _ => self.new_node().await,
        }
    }

    async fn delete_pod(&self, pod: &str) {
        let at_once = DeleteParams::default().grace_period(0);
        self.cluster.client().delete::<Pod>(pod, &at_once).await.unwrap();
    }

    async fn new_node(&mut self) -> String {
        let name = format!("node-{}", self.made);
        let mut labels = self.node_labels();
        labels.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let node: Node = object(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": {"unschedulable": self.dice.chance(10), "taints": self.taints()},
            "status": {"allocatable": self.allocatable()},
        }));
        self.cluster.client().create(&node).await.unwrap();
        format!("{name} comes")
    }

    async fn change_node(&mut self, node: &str) -> String {
        let client = self.cluster.client().clone();
        let status = self.dice.chance(25);
        let patch = match self.dice.below(3) {
            _ if status => json!({"status": {"allocatable": self.allocatable()}}),
            0 => json!({"metadata": {"labels": self.node_labels()}}),
            1 => json!({"spec": {"taints": self.taints()}}),
            _ => json!({"spec": {"unschedulable": self.dice.chance(40)}}),
        };
        let merge = Patch::Merge(&patch);
        match status {
            true => drop(client.patch_status::<Node, _>(node, &merge).await.unwrap()),
            false => drop(client.patch::<Node, _>(node, &merge).await.unwrap()),
        }
        format!("{node} becomes {patch}")
    }

    fn node_labels(&mut self) -> Value {
        let disk = self.dice.pick(&["ssd", "hdd"]);
        match self.dice.chance(85) {
            true => json!({"zone": self.dice.pick(&["x", "y", "z"]), "disk": disk}),
            false => json!({"zone": null, "disk": disk}),
        }
    }

    fn taints(&mut self) -> Value {
        match self.dice.chance(20) {
            true => json!([{"key": "dedicated", "effect": "NoSchedule"}]),
            false => json!([]),
        }
    }

    fn allocatable(&mut self) -> Value {
        let cpu = self.dice.pick(&["1", "2", "4", "6500m"]);
        json!({"cpu": cpu, "memory": "64Gi", "pods": self.dice.pick(&["2", "4", "20"])})
    }

    async fn new_pod(&mut self) -> String {
        let name = format!("pod-{}", self.made);
        let app = self.dice.pick(&["a", "b", "c"]);
        let mut container = json!({
            "name": "main", "image": "nginx",
            "resources": {"requests": {"cpu": self.dice.pick(&["100m", "500m", "1", "3"])}},
        });
        if self.dice.chance(15) {
            container["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
        }
        let mut spec = json!({"containers": [container]});
        if self.dice.chance(20) {
            spec["nodeSelector"] = json!({"disk": "ssd"});
        }
        if self.dice.chance(20) {
            spec["tolerations"] = json!([{"key": "dedicated", "operator": "Exists"}]);
        }
        if self.dice.chance(15) {
            spec["affinity"]["podAntiAffinity"] = json!({
                "requiredDuringSchedulingIgnoredDuringExecution": [{
                    "topologyKey": "zone",
                    "labelSelector": {"matchLabels": {"app": self.dice.pick(&["a", "b", "c"])}},
                }],
            });
        }
        if self.dice.chance(25) {
            spec["topologySpreadConstraints"] = json!([{
                "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": app}},
            }]);
        }
        let pod: Pod = object(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
            "spec": spec,
        }));
        self.cluster.client().create(&pod).await.unwrap();
        format!("{name} comes with {spec}")
    }
}

/// Deployments that change while nodes are lost and updated, and the scheduler's requests fail.
#[test]
fn nothing_is_bound_twice_or_beyond_what_a_node_has() {
    for seed in seeds(1) {
        let which = "*,-kube-scheduler".parse().unwrap();
        let settings = Settings { nodes: 4, which, seed, ..Settings::default() };
        run_with(settings, |cluster| async move { turmoil(&cluster, seed).await });
    }
}

async fn turmoil(cluster: &Cluster, seed: u64) {
    let mut dice = Dice(StdRng::seed_from_u64(seed));
    let bindings = Bindings::follow(cluster).await;
    let faults = Faults::seeded(seed)
        .with(Fault::ConnectionReset, 0.05)
        .with(Fault::ServerError, 0.05)
        .with(Fault::WatchEnded, 0.02)
        .with(Fault::EventTwice, 0.05);
    let manager = Manager::new(cluster.client_with(&faults));
    let _running = Scheduler::new().install(manager).unwrap().start();
    for app in ["a", "b", "c"] {
        let mut deployment = deployment(app, 6, "nginx");
        let template = deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        let requests = json!({"requests": {"cpu": dice.pick(&["700m", "1", "1500m"])}});
        template.containers[0].resources = Some(object(requests));
        cluster.client().create(&deployment).await.unwrap();
    }
    for step in 0..12 {
        let app = dice.pick(&["a", "b", "c"]);
        let node = format!("node-{}", dice.below(4));
        match dice.below(5) {
            0 => cluster.nodes().named(node).lost(),
            1 => cluster.nodes().named(node).back(),
            2 => {
                let patch = Patch::Merge(json!({"spec": {"unschedulable": dice.chance(50)}}));
                cluster.client().patch::<Node, _>(node.as_str(), &patch).await.unwrap();
            }
            3 => {
                let patch = Patch::Merge(json!({"spec": {"replicas": 2 + dice.below(12)}}));
                cluster.client().patch::<Deployment, _>(app, &patch).await.unwrap();
            }
            _ => {
                let image = json!([{"name": "main", "image": format!("nginx:{step}")}]);
                let spec = json!({"template": {"spec": {"containers": image}}});
                let patch = Patch::Strategic(json!({"spec": spec}));
                cluster.client().patch::<Deployment, _>(app, &patch).await.unwrap();
            }
        }
        let seconds = [2, 20, 400][dice.below(3)];
        cluster.advance(Duration::from_secs(seconds)).await;
    }
    faults.heal();
    cluster.advance(Duration::from_secs(600)).await;
    let bound = bindings.check(&format!("STEERSMAN_SEED={seed}"));
    assert!(bound > 18, "STEERSMAN_SEED={seed}: only {bound} Pods were bound");
    let injected = [Fault::ConnectionReset, Fault::ServerError].map(|it| faults.injected(it));
    assert!(!injected.contains(&0), "STEERSMAN_SEED={seed}: {injected:?}");
}
