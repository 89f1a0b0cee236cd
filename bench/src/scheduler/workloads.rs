//! What is scheduled: workloads in the style of those by which Kubernetes measures its own scheduler
//! (scheduler_perf), with the throughput that it must not fall below there, on 5,000 nodes. Two are
//! harder than what it asks of itself, and have no such bound.

use serde_json::{Value, json};

/// Where a node is, and by what it is known.
const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const ONE_ZONE: &[&str] = &["zone1"];
const ZONES: &[&str] = &["zone1", "zone2", "zone3"];
/// The color of the Pods that somebody waits for.
pub(super) const AWAITED: &str = "blue";
/// The class of Pods that may preempt others.
pub(super) const IMPORTANT: &str = "important";

/// Pods that are scheduled after others.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// The zones that nodes are in, in turns.
    pub(super) zones: &'static [&'static str],
    /// Pods that are there before, and what one of them is.
    pub(super) initial: (usize, fn(usize) -> Value),
    /// Pods that are measured, and what one of them is.
    pub(super) measured: (usize, fn(usize) -> Value),
    /// Pods that fit nowhere and are there all the time.
    pub(super) hopeless: usize,
    /// Pods of which one comes every now and then meanwhile, and for which nobody waits.
    pub(super) churn: Option<fn(usize) -> Value>,
    /// Pods a second that upstream asks of itself, if it does.
    pub(super) threshold: Option<f64>,
}

/// What most workloads have in common.
const USUAL: Workload = Workload {
    name: "",
    zones: ZONES,
    initial: (0, plain),
    measured: (0, plain),
    hopeless: 0,
    churn: None,
    threshold: None,
};

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "basic",
        initial: (1_000, plain),
        measured: (10_000, plain),
        threshold: Some(270.0),
        ..USUAL
    },
    // SchedulingNodeAffinity: all nodes are where the Pods want to be.
    Workload {
        name: "node affinity",
        zones: ONE_ZONE,
        initial: (5_000, node_affinity),
        measured: (10_000, node_affinity),
        threshold: Some(220.0),
        ..USUAL
    },
    Workload {
        name: "node affinity, a third of the nodes excluded",
        initial: (5_000, node_affinity),
        measured: (10_000, node_affinity),
        ..USUAL
    },
    Workload {
        name: "pod affinity",
        initial: (5_000, affinity),
        measured: (5_000, affinity),
        threshold: Some(35.0),
        ..USUAL
    },
    Workload {
        name: "pod anti-affinity",
        initial: (1_000, anti_affinity),
        measured: (2_000, anti_affinity),
        threshold: Some(60.0),
        ..USUAL
    },
    Workload {
        name: "preferred pod affinity",
        initial: (5_000, preferred_affinity),
        measured: (5_000, preferred_affinity),
        threshold: Some(90.0),
        ..USUAL
    },
    Workload {
        name: "preferred pod anti-affinity",
        initial: (5_000, preferred_anti_affinity),
        measured: (5_000, preferred_anti_affinity),
        threshold: Some(90.0),
        ..USUAL
    },
    Workload {
        name: "topology spreading",
        initial: (5_000, plain),
        measured: (5_000, spread),
        threshold: Some(85.0),
        ..USUAL
    },
    Workload {
        name: "preferred topology spreading",
        initial: (5_000, plain),
        measured: (5_000, preferred_spread),
        threshold: Some(125.0),
        ..USUAL
    },
    Workload {
        name: "unschedulable",
        hopeless: 200,
        measured: (10_000, plain),
        threshold: Some(140.0),
        ..USUAL
    },
    // PreemptionAsync: Pods that fit are measured, while others have to make room for some.
    Workload {
        name: "preemption",
        churn: Some(preempting),
        initial: (20_000, filling),
        measured: (5_000, plain),
        threshold: Some(160.0),
        ..USUAL
    },
    // PreemptionBasic with 5,000 nodes, which upstream has switched off: it does not get through.
    Workload {
        name: "preemption by every Pod",
        initial: (20_000, filling),
        measured: (5_000, preempting),
        ..USUAL
    },
];

/// A node of 4 processors and 32 GiB, in one of these zones.
pub(super) fn node(number: usize, zones: &[&str]) -> Value {
    let name = format!("node-{number}");
    let resources = json!({"cpu": "4", "memory": "32Gi", "pods": "110"});
    json!({
        "metadata": {
            "name": name,
            "labels": {HOSTNAME: name, ZONE: zones[number % zones.len()]},
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Measured"}],
        },
    })
}

fn pod(name: &str, mut spec: Value) -> Value {
    let requests = spec.get("requests").cloned();
    let requests = requests.unwrap_or_else(|| json!({"cpu": "100m", "memory": "500Mi"}));
    let fields = spec.as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut whole = json!({
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "pause",
            "image": "registry.k8s.io/pause:3.10.1",
            "ports": [{"containerPort": 80}],
            "resources": {"limits": requests, "requests": requests},
        }],
    });
    for (field, value) in fields.into_iter().filter(|(field, _)| field != "requests") {
        whole[field] = value;
    }
    json!({"metadata": {"name": name, "labels": {"color": AWAITED}}, "spec": whole})
}

/// The same Pod, for which nobody waits.
pub(super) fn unawaited(mut pod: Value) -> Value {
    pod["metadata"]["labels"]["color"] = json!("red");
    pod
}

fn plain(number: usize) -> Value {
    pod(&format!("plain-{number}"), json!({}))
}

fn node_affinity(number: usize) -> Value {
    let expression = json!({"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]});
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
    let affinity = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }});
    pod(&format!("node-affinity-{number}"), json!({"affinity": affinity}))
}

/// Beside, or not beside, those of its own color.
fn term(topology: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"color": AWAITED}}, "topologyKey": topology})
}

fn affinity(number: usize) -> Value {
    let affinity = json!({"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term(ZONE)],
    }});
    pod(&format!("affinity-{number}"), json!({"affinity": affinity}))
}

fn anti_affinity(number: usize) -> Value {
    let affinity = json!({"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term(HOSTNAME)],
    }});
    pod(&format!("anti-affinity-{number}"), json!({"affinity": affinity}))
}

fn preferred_affinity(number: usize) -> Value {
    let affinity = json!({"podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1, "podAffinityTerm": term(HOSTNAME)}],
    }});
    pod(&format!("preferred-affinity-{number}"), json!({"affinity": affinity}))
}

fn preferred_anti_affinity(number: usize) -> Value {
    let affinity = json!({"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1, "podAffinityTerm": term(HOSTNAME)}],
    }});
    pod(&format!("preferred-anti-affinity-{number}"), json!({"affinity": affinity}))
}

fn constraint(when_unsatisfiable: &str) -> Value {
    json!([{
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": {"color": AWAITED}},
    }])
}

fn spread(number: usize) -> Value {
    let constraints = constraint("DoNotSchedule");
    pod(&format!("spread-{number}"), json!({"topologySpreadConstraints": constraints}))
}

fn preferred_spread(number: usize) -> Value {
    let constraints = constraint("ScheduleAnyway");
    pod(&format!("preferred-spread-{number}"), json!({"topologySpreadConstraints": constraints}))
}

/// Four of these fill a node.
fn filling(number: usize) -> Value {
    pod(&format!("filling-{number}"), json!({"requests": {"cpu": "900m", "memory": "500Mi"}}))
}

/// Has a node to itself but for one of those that fill it.
fn preempting(number: usize) -> Value {
    let requests = json!({"cpu": "3", "memory": "500Mi"});
    let spec = json!({"priorityClassName": IMPORTANT, "requests": requests});
    pod(&format!("preempting-{number}"), spec)
}

/// Fits nowhere.
pub(super) fn hopeless(number: usize) -> Value {
    unawaited(pod(&format!("hopeless-{number}"), json!({"requests": {"cpu": "40"}})))
}
