//! A cluster that follows from a seed: nodes of all sorts, what runs on them, and Pods to schedule.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::pods::{self, Asks, IMAGES, NAMESPACES, ZONES};

/// The priority classes, with their values and policies.
const PRIORITIES: [(&str, i64, &str); 4] = [
    ("low", -5, "PreemptLowerPriority"),
    ("middle", 100, "PreemptLowerPriority"),
    ("high", 1000, "PreemptLowerPriority"),
    ("polite", 1000, "Never"),
];

/// A cluster, and the Pods to schedule in it one after another.
pub(super) struct World {
    /// Everything but Pods and Nodes.
    pub(super) objects: Vec<Value>,
    pub(super) nodes: Vec<Value>,
    /// Pods that have a node.
    pub(super) pods: Vec<Value>,
    pub(super) trials: Vec<Value>,
}

/// What every cluster has.
pub(super) fn common() -> Vec<Value> {
    let namespaces = NAMESPACES.map(|(name, label)| {
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"team": label}}})
    });
    let priorities = PRIORITIES.map(|(name, value, policy)| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "preemptionPolicy": policy})
    });
    namespaces.into_iter().chain(priorities).collect()
}

impl World {
    /// The cluster of a seed, with so many Pods to schedule.
    pub(super) fn of(seed: u64, trials: usize) -> Self {
        let mut dice = Dice::new(seed);
        let count = if dice.chance(15) { dice.between(1, 4) } else { dice.between(4, 18) };
        let nodes: Vec<Value> = (0..count).map(|n| node(&mut dice, seed, n)).collect();
        let mut objects = budgets(&mut dice, seed);
        objects.extend(services(&mut dice, seed));
        objects.extend(storage(&mut dice, seed, &nodes));
        objects.extend(nodes.iter().filter_map(|node| csi_node(&mut dice, node)));
        let crowded = dice.between(0, 5);
        let mut running = Vec::new();
        for n in 0..crowded * count {
            let place = usize::try_from(dice.between(0, count)).unwrap_or_default();
            let name = format!("s{seed}-running-{n}");
            let mut pod = pods::pod(&mut dice, &name, seed, &nodes, Asks::LITTLE);
            pod["spec"]["nodeName"] = nodes[place]["metadata"]["name"].clone();
            let minute = dice.between(0, 60);
            pod["status"] = json!({
                "phase": "Running",
                "startTime": format!("2020-01-01T12:{minute:02}:00Z"),
            });
            running.push(pod);
        }
        let trial = |n| {
            let name = format!("s{seed}-trial-{n}");
            pods::pod(&mut dice, &name, seed, &nodes, Asks::MUCH)
        };
        let trials = (0..trials).map(trial).collect();
        Self { objects, nodes, pods: running, trials }
    }
}

fn node(dice: &mut Dice, seed: u64, n: u64) -> Value {
    let name = format!("s{seed}-node-{n}");
    let mut labels = Map::new();
    labels.insert("kubernetes.io/hostname".to_owned(), json!(name));
    if dice.chance(90) {
        labels.insert("topology.kubernetes.io/zone".to_owned(), json!(dice.pick(&ZONES)));
        labels.insert("topology.kubernetes.io/region".to_owned(), json!("here"));
    }
    if dice.chance(60) {
        labels.insert("disk".to_owned(), json!(dice.pick(&["ssd", "hdd"])));
    }
    if dice.chance(60) {
        labels.insert("size".to_owned(), json!(dice.between(1, 6).to_string()));
    }
    let mut taints = Vec::new();
    for (key, value, effect, percent) in [
        ("dedicated", "db", "NoSchedule", 12),
        ("dedicated", "web", "PreferNoSchedule", 15),
        ("spot", "", "NoExecute", 6),
        ("maintenance", "soon", "PreferNoSchedule", 10),
        ("gpu", "true", "NoSchedule", 8),
    ] {
        if dice.chance(percent) {
            taints.push(json!({"key": key, "value": value, "effect": effect}));
        }
    }
    let mut allocatable = json!({
        "cpu": dice.pick(&["900m", "2", "4", "8", "16"]),
        "memory": dice.pick(&["1Gi", "4Gi", "8000M", "32Gi", "63Gi"]),
        "pods": dice.pick(&["3", "6", "20", "110"]),
        "ephemeral-storage": dice.pick(&["1Gi", "20Gi", "100Gi"]),
    });
    if dice.chance(35) {
        allocatable["example.com/gpu"] = json!(dice.pick(&["1", "2", "8"]));
    }
    if dice.chance(15) {
        allocatable["hugepages-2Mi"] = json!("64Mi");
    }
    let images: Vec<Value> = IMAGES
        .iter()
        .filter(|_| dice.chance(35))
        .map(|(name, size)| json!({"names": [name], "sizeBytes": size}))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": dice.chance(8)},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "images": images,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn budgets(dice: &mut Dice, seed: u64) -> Vec<Value> {
    let mut budgets = Vec::new();
    for app in pods::APPS {
        if dice.chance(25) {
            budgets.push(json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": format!("s{seed}-{app}"), "namespace": NAMESPACES[0].0},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
                "status": {
                    "disruptionsAllowed": dice.between(0, 2), "currentHealthy": 1,
                    "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1,
                },
            }));
        }
    }
    budgets
}

/// Services: their Pods spread by default.
fn services(dice: &mut Dice, seed: u64) -> Vec<Value> {
    let mut objects = Vec::new();
    for app in pods::APPS {
        if dice.chance(30) {
            objects.push(json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": format!("s{seed}-{app}"), "namespace": NAMESPACES[0].0},
                "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
            }));
        }
    }
    objects
}

fn storage(dice: &mut Dice, seed: u64, nodes: &[Value]) -> Vec<Value> {
    let class = |name: &str, provisioner: &str, mode: &str| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": format!("s{seed}-{name}")},
            "provisioner": provisioner, "volumeBindingMode": mode,
        })
    };
    let mut objects = vec![class("now", "example.com/none", "Immediate")];
    let mut made = class("made", pods::DRIVER, "WaitForFirstConsumer");
    if dice.chance(50) {
        let zones = dice.some(&ZONES, 50);
        made["allowedTopologies"] = json!([{"matchLabelExpressions": [
            {"key": "topology.kubernetes.io/zone", "values": zones},
        ]}]);
    }
    objects.push(made);
    for (n, bound) in pods::CLAIMS.iter().enumerate() {
        let mut terms = Vec::new();
        if dice.chance(70) {
            let zones = dice.some(&ZONES, 50);
            terms.push(json!({"key": "topology.kubernetes.io/zone", "operator": "In",
                "values": zones}));
        } else {
            let place = usize::try_from(dice.between(0, nodes.len() as u64)).unwrap_or_default();
            let name = &nodes[place]["metadata"]["name"];
            terms.push(json!({"key": "kubernetes.io/hostname", "operator": "In",
                "values": [name]}));
        }
        let mut volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": format!("s{seed}-{bound}")},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": format!("s{seed}-now"),
                "claimRef": {"namespace": NAMESPACES[0].0, "name": format!("s{seed}-{bound}")},
                "csi": {"driver": pods::DRIVER, "volumeHandle": format!("s{seed}-{bound}")},
            },
        });
        match dice.between(0, 3) {
            0 => {
                volume["metadata"]["labels"] =
                    json!({"topology.kubernetes.io/zone": dice.pick(&ZONES)});
            }
            1 => {}
            _ => {
                volume["spec"]["nodeAffinity"] =
                    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}});
            }
        }
        let mode = if n == 0 { "ReadWriteOncePod" } else { "ReadWriteOnce" };
        volume["spec"]["accessModes"] = json!([mode]);
        objects.push(volume);
        let mut claim = claim(seed, bound, "now", mode);
        claim["spec"]["volumeName"] = json!(format!("s{seed}-{bound}"));
        claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
        claim["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
        objects.push(claim);
    }
    objects.push(claim(seed, pods::UNBOUND, "now", "ReadWriteOnce"));
    objects.push(claim(seed, pods::MADE, "made", "ReadWriteOnce"));
    objects
}

fn claim(seed: u64, name: &str, class: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": format!("s{seed}-{name}"), "namespace": NAMESPACES[0].0},
        "spec": {
            "accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": format!("s{seed}-{class}"),
        },
    })
}

fn csi_node(dice: &mut Dice, node: &Value) -> Option<Value> {
    let name = &node["metadata"]["name"];
    dice.chance(70).then(|| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
            "spec": {"drivers": [{
                "name": pods::DRIVER, "nodeID": name, "topologyKeys": [],
                "allocatable": {"count": dice.between(1, 4)},
            }]},
        })
    })
}
