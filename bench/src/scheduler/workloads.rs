//! What is scheduled: workloads in the style of those by which Kubernetes measures its own scheduler
//! (scheduler_perf), with the throughput that it must not fall below there, on 5,000 nodes.

use serde_json::{Value, json};

/// Where a node is, and by what it is known.
const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONES: usize = 3;
/// The class of Pods that may preempt others.
pub(super) const IMPORTANT: &str = "important";

/// Pods that are scheduled after others.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// Pods that are there before, and what one of them is.
    pub(super) initial: (usize, fn(usize) -> Value),
    /// Pods that are measured, and what one of them is.
    pub(super) measured: (usize, fn(usize) -> Value),
    /// Pods that fit nowhere and are there all the time.
    pub(super) hopeless: usize,
    /// Pods a second that upstream asks of itself.
    pub(super) threshold: f64,
}

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "basic",
        initial: (1_000, plain),
        measured: (10_000, plain),
        hopeless: 0,
        threshold: 270.0,
    },
    Workload {
        name: "node affinity",
        initial: (5_000, node_affinity),
        measured: (10_000, node_affinity),
        hopeless: 0,
        threshold: 220.0,
    },
    Workload {
        name: "pod affinity",
        initial: (5_000, affinity),
        measured: (5_000, affinity),
        hopeless: 0,
        threshold: 35.0,
    },
    Workload {
        name: "pod anti-affinity",
        initial: (1_000, anti_affinity),
        measured: (2_000, anti_affinity),
        hopeless: 0,
        threshold: 60.0,
    },
    Workload {
        name: "preferred pod affinity",
        initial: (5_000, preferred_affinity),
        measured: (5_000, preferred_affinity),
        hopeless: 0,
        threshold: 90.0,
    },
    Workload {
        name: "preferred pod anti-affinity",
        initial: (5_000, preferred_anti_affinity),
        measured: (5_000, preferred_anti_affinity),
        hopeless: 0,
        threshold: 90.0,
    },
    Workload {
        name: "topology spreading",
        initial: (5_000, plain),
        measured: (5_000, spread),
        hopeless: 0,
        threshold: 85.0,
    },
    Workload {
        name: "preferred topology spreading",
        initial: (5_000, plain),
        measured: (5_000, preferred_spread),
        hopeless: 0,
        threshold: 125.0,
    },
    Workload {
        name: "unschedulable",
        initial: (0, plain),
        measured: (10_000, plain),
        hopeless: 200,
        threshold: 140.0,
    },
    Workload {
        name: "preemption",
        initial: (20_000, filling),
        measured: (5_000, preempting),
        hopeless: 0,
        threshold: 160.0,
    },
];

/// A node of 4 processors and 32 GiB, one of three zones.
pub(super) fn node(number: usize) -> Value {
    let name = format!("node-{number}");
    let resources = json!({"cpu": "4", "memory": "32Gi", "pods": "110"});
    json!({
        "metadata": {
            "name": name,
            "labels": {HOSTNAME: name, ZONE: format!("zone-{}", number % ZONES)},
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
        "containers": [{"name": "pause", "image": "pause", "resources": {"requests": requests}}],
    });
    for (field, value) in fields.into_iter().filter(|(field, _)| field != "requests") {
        whole[field] = value;
    }
    json!({"metadata": {"name": name, "labels": {"color": "blue"}}, "spec": whole})
}

fn plain(number: usize) -> Value {
    pod(&format!("plain-{number}"), json!({}))
}

fn node_affinity(number: usize) -> Value {
    let expression = json!({"key": ZONE, "operator": "In", "values": ["zone-0", "zone-1"]});
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
    let affinity = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }});
    pod(&format!("node-affinity-{number}"), json!({"affinity": affinity}))
}

/// Beside, or not beside, those of its own color.
fn term(topology: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"color": "blue"}}, "topologyKey": topology})
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
        "labelSelector": {"matchLabels": {"color": "blue"}},
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
    pod(&format!("hopeless-{number}"), json!({"requests": {"cpu": "40"}}))
}
