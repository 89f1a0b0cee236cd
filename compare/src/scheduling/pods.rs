//! Pods that follow from chance, with everything that matters for where they go.

use serde_json::{Value, json};

use super::dice::Dice;

/// The namespaces of Pods, with their labels.
pub(super) const NAMESPACES: [(&str, &str); 2] = [("blue", "one"), ("green", "two")];
/// Where their nodes are.
pub(super) const ZONES: [&str; 3] = ["east", "west", "north"];
/// What they run, with its size.
pub(super) const IMAGES: [(&str, u64); 5] = [
    ("registry.test/small:1", 30 << 20),
    ("registry.test/web:1", 200 << 20),
    ("registry.test/db:2", 700 << 20),
    ("registry.test/huge:1", 3000 << 20),
    ("registry.test/other:1", 400 << 20),
];
pub(super) const APPS: [&str; 3] = ["web", "db", "cache"];
const TIERS: [&str; 2] = ["front", "back"];
/// Claims that have a volume; the first is for one Pod only.
pub(super) const CLAIMS: [&str; 5] = ["alone", "data-a", "data-b", "data-c", "data-d"];
/// A claim that waits for a volume.
pub(super) const UNBOUND: &str = "unbound";
/// A claim whose volume is made when a Pod has a node.
pub(super) const MADE: &str = "made";
/// Who makes and attaches volumes.
pub(super) const DRIVER: &str = "csi.example.com";
const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// How often a Pod asks for each thing, of a hundred.
#[derive(Clone, Copy)]
pub(super) struct Asks {
    /// Which node it may go to.
    nodes: u64,
    /// Which Pods it is to be near or far from.
    others: u64,
    /// How Pods like it are spread.
    spread: u64,
    ports: u64,
    volumes: u64,
    large: u64,
}

impl Asks {
    /// What Pods ask for that run already.
    pub(super) const LITTLE: Self =
        Self { nodes: 0, others: 8, spread: 0, ports: 10, volumes: 6, large: 10 };
    /// What Pods ask for that are to be scheduled.
    pub(super) const MUCH: Self =
        Self { nodes: 25, others: 25, spread: 35, ports: 15, volumes: 18, large: 18 };
}

/// A Pod.
pub(super) fn pod(dice: &mut Dice, name: &str, seed: u64, nodes: &[Value], asks: Asks) -> Value {
    let namespace = NAMESPACES[usize::from(dice.chance(25))].0;
    let mut spec = json!({"containers": containers(dice, asks)});
    if dice.chance(12) {
        spec["initContainers"] = init_containers(dice);
    } else if dice.chance(8) {
        // What the whole Pod asks for may not be less than what its containers do.
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            container["resources"] = json!({});
        }
        spec["resources"] = json!({"requests": {"cpu": dice.pick(&["1", "2500m"])}});
    }
    let classes = ["low", "middle", "high", "polite"];
    if dice.chance(60) {
        spec["priorityClassName"] = json!(dice.pick(&classes));
    }
    let tolerations = tolerations(dice);
    spec["tolerations"] = json!(tolerations);
    if dice.chance(asks.nodes) {
        if dice.chance(40) {
            spec["nodeSelector"] = json!({"disk": dice.pick(&["ssd", "hdd"])});
        }
        spec["affinity"]["nodeAffinity"] = node_affinity(dice, nodes);
    }
    if dice.chance(asks.others) {
        spec["affinity"]["podAffinity"] = pod_affinity(dice);
    }
    if dice.chance(asks.others) {
        spec["affinity"]["podAntiAffinity"] = pod_affinity(dice);
    }
    if dice.chance(asks.spread) {
        spec["topologySpreadConstraints"] = spread(dice);
    }
    if namespace == NAMESPACES[0].0 && dice.chance(asks.volumes) {
        spec["volumes"] = volumes(dice, seed, asks);
    }
    let mut labels = json!({"app": dice.pick(&APPS)});
    if dice.chance(70) {
        labels["tier"] = json!(dice.pick(&TIERS));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    })
}

fn containers(dice: &mut Dice, asks: Asks) -> Value {
    let count = if dice.chance(25) { 2 } else { 1 };
    let mut containers = Vec::new();
    for n in 0..count {
        let (image, _) = IMAGES[usize::try_from(dice.between(0, 5)).unwrap_or_default()];
        let mut container = json!({"name": format!("c{n}"), "image": image});
        let mut requests = json!({});
        if dice.chance(75) {
            let cpu: &[&str] = match dice.chance(asks.large) {
                true => &["1500m", "3", "7", "12"],
                false => &["1m", "100m", "250m", "500m", "1"],
            };
            requests["cpu"] = json!(dice.pick(cpu));
        }
        if dice.chance(75) {
            let memory: &[&str] = match dice.chance(asks.large) {
                true => &["2Gi", "6Gi", "20Gi"],
                false => &["1Mi", "64Mi", "200M", "500Mi", "1Gi"],
            };
            requests["memory"] = json!(dice.pick(memory));
        }
        if dice.chance(8) {
            requests["ephemeral-storage"] = json!(dice.pick(&["500Mi", "3Gi", "30Gi"]));
        }
        container["resources"] = json!({"requests": requests});
        if dice.chance(10) {
            let amount = dice.pick(&["1", "2", "3"]);
            container["resources"]["requests"]["example.com/gpu"] = json!(amount);
            container["resources"]["limits"] = json!({"example.com/gpu": amount});
        }
        if n == 0 && dice.chance(asks.ports) {
            container["ports"] = ports(dice);
        }
        containers.push(container);
    }
    json!(containers)
}

fn ports(dice: &mut Dice) -> Value {
    let mut port = json!({
        "containerPort": 80, "hostPort": 8000 + dice.between(0, 3),
        "protocol": dice.pick(&["TCP", "TCP", "UDP"]),
    });
    if dice.chance(40) {
        port["hostIP"] = json!(dice.pick(&["127.0.0.1", "10.0.0.1", "0.0.0.0"]));
    }
    json!([port])
}

fn init_containers(dice: &mut Dice) -> Value {
    let mut container = json!({
        "name": "init", "image": IMAGES[0].0,
        "resources": {"requests": {"cpu": dice.pick(&["100m", "2"]), "memory": "100Mi"}},
    });
    if dice.chance(50) {
        container["restartPolicy"] = json!("Always");
    }
    json!([container])
}

fn tolerations(dice: &mut Dice) -> Vec<Value> {
    let all = [
        json!({"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}),
        json!({"key": "dedicated", "operator": "Exists"}),
        json!({"key": "spot", "operator": "Exists", "effect": "NoExecute"}),
        json!({"key": "maintenance", "value": "soon", "effect": "PreferNoSchedule"}),
        json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}),
        json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}),
        json!({"operator": "Exists"}),
    ];
    let percents = [20, 8, 15, 15, 15, 10, 4];
    all.into_iter().zip(percents).filter(|(_, it)| dice.chance(*it)).map(|(it, _)| it).collect()
}

fn node_term(dice: &mut Dice, nodes: &[Value]) -> Value {
    match dice.between(0, 8) {
        0 => json!({"matchExpressions": [
            {"key": ZONE, "operator": "In", "values": dice.some(&ZONES, 45)},
        ]}),
        1 => json!({"matchExpressions": [
            {"key": ZONE, "operator": "NotIn", "values": dice.some(&ZONES, 30)},
        ]}),
        2 => json!({"matchExpressions": [{"key": "disk", "operator": "Exists"}]}),
        3 => json!({"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}),
        4 => json!({"matchExpressions": [
            {"key": "size", "operator": dice.pick(&["Gt", "Lt"]), "values": ["3"]},
        ]}),
        5 => {
            let place = usize::try_from(dice.between(0, nodes.len() as u64)).unwrap_or_default();
            let operator = dice.pick(&["In", "NotIn"]);
            json!({"matchFields": [{"key": "metadata.name", "operator": operator,
                "values": [nodes[place]["metadata"]["name"]]}]})
        }
        6 => json!({"matchExpressions": [
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": ZONE, "operator": "Exists"},
        ]}),
        _ => json!({}), // fits nothing
    }
}

fn node_affinity(dice: &mut Dice, nodes: &[Value]) -> Value {
    let mut affinity = json!({});
    if dice.chance(60) {
        let count = dice.between(1, 3);
        let terms: Vec<Value> = (0..count).map(|_| node_term(dice, nodes)).collect();
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!({"nodeSelectorTerms": terms});
    }
    if dice.chance(60) {
        let count = dice.between(1, 4);
        let mut preferred = Vec::new();
        for _ in 0..count {
            let weight = dice.between(1, 101);
            preferred.push(json!({"weight": weight, "preference": node_term(dice, nodes)}));
        }
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = json!(preferred);
    }
    affinity
}

fn selector(dice: &mut Dice) -> Value {
    match dice.between(0, 6) {
        0 | 1 => json!({"matchLabels": {"app": dice.pick(&APPS)}}),
        2 => json!({"matchLabels": {"tier": dice.pick(&TIERS)}}),
        3 => json!({"matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": [dice.pick(&APPS)]},
        ]}),
        4 => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
        _ => json!({}),
    }
}

fn pod_term(dice: &mut Dice) -> Value {
    let mut term = json!({
        "labelSelector": selector(dice),
        "topologyKey": dice.pick(&[HOSTNAME, ZONE, ZONE, "disk"]),
    });
    match dice.between(0, 6) {
        0 => term["namespaces"] = json!(["green"]),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"team": "one"}}),
        2 => term["namespaceSelector"] = json!({}),
        3 if may_match_tier(&term) => term["matchLabelKeys"] = json!(["tier"]),
        _ => {}
    }
    term
}

/// A label must not be asked for in both ways.
fn may_match_tier(term: &Value) -> bool {
    !term["labelSelector"].to_string().contains("tier")
}

fn pod_affinity(dice: &mut Dice) -> Value {
    let mut affinity = json!({});
    if dice.chance(55) {
        let count = dice.between(1, 3);
        let terms: Vec<Value> = (0..count).map(|_| pod_term(dice)).collect();
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = json!(terms);
    }
    if dice.chance(60) {
        let count = dice.between(1, 3);
        let mut preferred = Vec::new();
        for _ in 0..count {
            let weight = dice.between(1, 101);
            preferred.push(json!({"weight": weight, "podAffinityTerm": pod_term(dice)}));
        }
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = json!(preferred);
    }
    affinity
}

fn spread(dice: &mut Dice) -> Value {
    let mut constraints = Vec::new();
    for key in [HOSTNAME, ZONE, "disk"] {
        if !dice.chance(45) {
            continue;
        }
        let is_hard = dice.chance(50);
        let mut constraint = json!({
            "topologyKey": key,
            "maxSkew": dice.between(1, 4),
            "whenUnsatisfiable": if is_hard { "DoNotSchedule" } else { "ScheduleAnyway" },
            "labelSelector": selector(dice),
        });
        if is_hard && dice.chance(30) {
            constraint["minDomains"] = json!(dice.between(1, 6));
        }
        if dice.chance(25) {
            constraint["nodeAffinityPolicy"] = json!(dice.pick(&["Honor", "Ignore"]));
        }
        if dice.chance(25) {
            constraint["nodeTaintsPolicy"] = json!(dice.pick(&["Honor", "Ignore"]));
        }
        if dice.chance(15) && may_match_tier(&constraint) {
            constraint["matchLabelKeys"] = json!(["tier"]);
        }
        constraints.push(constraint);
    }
    json!(constraints)
}

fn volumes(dice: &mut Dice, seed: u64, asks: Asks) -> Value {
    let mut claims = dice.some(&CLAIMS, 20);
    if asks.nodes > 0 {
        // Only of those that are to be scheduled: nobody runs without its volumes.
        match dice.between(0, 10) {
            0 => claims.push(UNBOUND),
            1 => claims.push("missing"),
            2 | 3 => claims = vec![MADE],
            _ => {}
        }
    }
    let volumes = claims.iter().map(|claim| {
        json!({"name": claim, "persistentVolumeClaim": {"claimName": format!("s{seed}-{claim}")}})
    });
    json!(volumes.collect::<Vec<_>>())
}
