//! A scheduler as slow and plain as can be: it looks at every node and every Pod for every question,
//! remembers nothing, and shares no code with the real one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Everything that matters for where a Pod can go, as the API server has it.
pub(super) struct Reference {
    pub(super) nodes: Vec<Value>,
    /// The Pods that have a node.
    pub(super) placed: Vec<Value>,
}

const ZONE: &str = "zone";

impl Reference {
    /// The names of the nodes that could run a Pod.
    pub(super) fn feasible(&self, pod: &Value) -> BTreeSet<String> {
        let could = |node: &&Value| {
            self.admits(node, pod) && self.has_room(node, pod) && self.suits_others(node, pod)
        };
        self.nodes.iter().filter(could).map(name).collect()
    }

    /// Whether a node takes such Pods at all.
    fn admits(&self, node: &Value, pod: &Value) -> bool {
        let tolerates = |key: &str| {
            list(&pod["spec"]["tolerations"])
                .any(|it| it["key"] == key && it["operator"] == "Exists")
        };
        let cordoned = node["spec"]["unschedulable"] == true;
        let tainted = list(&node["spec"]["taints"])
            .any(|taint| !tolerates(taint["key"].as_str().unwrap_or_default()));
        (!cordoned || tolerates("node.kubernetes.io/unschedulable")) && !tainted && wants(pod, node)
    }

    /// Whether there is room for it.
    fn has_room(&self, node: &Value, pod: &Value) -> bool {
        let there: Vec<&Value> = self.on(node).collect();
        let offered = &node["status"]["allocatable"];
        let pods = offered["pods"].as_str().unwrap().parse::<usize>().unwrap();
        let cpu: u64 = there.iter().map(|pod| cpu(pod)).sum();
        let ports: Vec<u64> = there.iter().flat_map(|pod| ports(pod)).collect();
        there.len() < pods
            && cpu + self::cpu(pod) <= millis(&offered["cpu"])
            && !self::ports(pod).iter().any(|port| ports.contains(port))
    }

    /// Whether it may be where others are.
    fn suits_others(&self, node: &Value, pod: &Value) -> bool {
        let avoids = |who: &Value, whom: &Value| {
            avoided(who).is_some_and(|app| whom["metadata"]["labels"]["app"] == *app)
        };
        let in_zone = |other: &&Value| {
            let zone = self.node_of(other).map(|node| &node["metadata"]["labels"][ZONE]);
            zone.is_some_and(|zone| !zone.is_null() && *zone == node["metadata"]["labels"][ZONE])
        };
        let clashes = self
            .placed
            .iter()
            .filter(in_zone)
            .any(|other| avoids(pod, other) || avoids(other, pod));
        !clashes && self.spreads(node, pod)
    }

    /// Whether the zones would have Pods like it evenly enough.
    fn spreads(&self, node: &Value, pod: &Value) -> bool {
        let Some(constraint) = list(&pod["spec"]["topologySpreadConstraints"]).next() else {
            return true;
        };
        let app = &constraint["labelSelector"]["matchLabels"]["app"];
        let mut zones: BTreeMap<&str, u64> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| wants(pod, node)) {
            if let Some(zone) = node["metadata"]["labels"][ZONE].as_str() {
                let alike = |it: &&Value| {
                    it["metadata"]["labels"]["app"] == *app
                        && it["metadata"]["deletionTimestamp"].is_null()
                };
                *zones.entry(zone).or_default() += self.on(node).filter(alike).count() as u64;
            }
        }
        let Some(zone) = node["metadata"]["labels"][ZONE].as_str() else { return false };
        let least = zones.values().copied().min().unwrap_or_default();
        let itself = u64::from(pod["metadata"]["labels"]["app"] == *app);
        let there = zones.get(zone).copied().unwrap_or_default();
        there + itself - least.min(there + itself) <= constraint["maxSkew"].as_u64().unwrap()
    }

    fn on<'a>(&'a self, node: &'a Value) -> impl Iterator<Item = &'a Value> {
        self.placed.iter().filter(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"])
    }

    fn node_of(&self, pod: &Value) -> Option<&Value> {
        self.nodes.iter().find(|node| node["metadata"]["name"] == pod["spec"]["nodeName"])
    }
}

/// Whether a node has the labels that a Pod asks for.
fn wants(pod: &Value, node: &Value) -> bool {
    let asked = pod["spec"]["nodeSelector"].as_object();
    asked.is_none_or(|asked| {
        asked.iter().all(|(key, value)| node["metadata"]["labels"][key] == *value)
    })
}

/// The app whose Pods may not be in the zone of this Pod.
fn avoided(pod: &Value) -> Option<&Value> {
    let terms = &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let term = list(terms).next()?;
    Some(&term["labelSelector"]["matchLabels"]["app"])
}

fn cpu(pod: &Value) -> u64 {
    list(&pod["spec"]["containers"]).map(|it| millis(&it["resources"]["requests"]["cpu"])).sum()
}

fn ports(pod: &Value) -> Vec<u64> {
    let containers = list(&pod["spec"]["containers"]);
    containers.flat_map(|it| list(&it["ports"])).filter_map(|it| it["hostPort"].as_u64()).collect()
}

/// Thousandths of a quantity such as `2` or `500m`.
pub(super) fn millis(quantity: &Value) -> u64 {
    match quantity.as_str() {
        None => 0,
        Some(text) => match text.strip_suffix('m') {
            Some(millis) => millis.parse().unwrap(),
            None => text.parse::<u64>().unwrap() * 1000,
        },
    }
}

pub(super) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
