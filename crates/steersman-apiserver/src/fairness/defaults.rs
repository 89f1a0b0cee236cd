//! The priority levels and flow schemas that every cluster has: those of Kubernetes 1.36.
//!
//! `exempt` and `catch-all` are mandatory; the others are suggested, and whoever runs the cluster
//! may change them.

use serde_json::{Value, json};

use super::schema::FlowSchema;
use super::spec::LevelSpec;
use crate::user::{AUTHENTICATED, MASTERS, UNAUTHENTICATED};

/// Says whether the server keeps what an object says as it is here.
pub(crate) const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// The version of both kinds.
pub(crate) const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";

/// What nobody may change.
pub(crate) const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// A level: its name, its share, how much of it it may lend, and how many queues it has, of which a
/// flow has how many.
type Limited = (&'static str, u32, u32, Option<(u32, u32)>);

const LEVELS: [Limited; 7] = [
    ("system", 30, 33, Some((64, 6))),
    ("node-high", 40, 25, Some((64, 6))),
    ("leader-election", 10, 0, Some((16, 4))),
    ("workload-high", 40, 50, Some((128, 6))),
    ("workload-low", 100, 90, Some((128, 6))),
    ("global-default", 20, 50, Some((128, 6))),
    ("catch-all", 5, 0, None),
];

/// How many requests may wait in a queue.
const QUEUE_LENGTH: u32 = 50;

/// Who sends requests.
enum From {
    Groups(&'static [&'static str]),
    Users(&'static [&'static str]),
    /// The service accounts of `kube-system`, and these users before them.
    System(&'static [&'static str]),
}

/// What they ask for.
enum About {
    Everything,
    Probes,
    Leases,
    NodesAndLeases,
}

struct Schema {
    name: &'static str,
    level: &'static str,
    precedence: i64,
    /// What makes requests different flows.
    method: &'static str,
    from: From,
    about: About,
}

const EVERYBODY: From = From::Groups(&[UNAUTHENTICATED, AUTHENTICATED]);
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";

const SCHEMAS: [Schema; 11] = [
    Schema {
        name: "exempt",
        level: "exempt",
        precedence: 1,
        method: "",
        from: From::Groups(&[MASTERS]),
        about: About::Everything,
    },
    Schema {
        name: "probes",
        level: "exempt",
        precedence: 2,
        method: "",
        from: EVERYBODY,
        about: About::Probes,
    },
    Schema {
        name: "system-leader-election",
        level: "leader-election",
        precedence: 100,
        method: "ByUser",
        from: From::System(&[CONTROLLER_MANAGER, SCHEDULER]),
        about: About::Leases,
    },
    Schema {
        name: "system-node-high",
        level: "node-high",
        precedence: 400,
        method: "ByUser",
        from: From::Groups(&["system:nodes"]),
        about: About::NodesAndLeases,
    },
    Schema {
        name: "system-nodes",
        level: "system",
        precedence: 500,
        method: "ByUser",
        from: From::Groups(&["system:nodes"]),
        about: About::Everything,
    },
    Schema {
        name: "kube-controller-manager",
        level: "workload-high",
        precedence: 800,
        method: "ByNamespace",
        from: From::Users(&[CONTROLLER_MANAGER]),
        about: About::Everything,
    },
    Schema {
        name: "kube-scheduler",
        level: "workload-high",
        precedence: 800,
        method: "ByNamespace",
        from: From::Users(&[SCHEDULER]),
        about: About::Everything,
    },
    Schema {
        name: "kube-system-service-accounts",
        level: "workload-high",
        precedence: 900,
        method: "ByNamespace",
        from: From::System(&[]),
        about: About::Everything,
    },
    Schema {
        name: "service-accounts",
        level: "workload-low",
        precedence: 9000,
        method: "ByUser",
        from: From::Groups(&["system:serviceaccounts"]),
        about: About::Everything,
    },
    Schema {
        name: "global-default",
        level: "global-default",
        precedence: 9900,
        method: "ByUser",
        from: EVERYBODY,
        about: About::Everything,
    },
    Schema {
        name: "catch-all",
        level: "catch-all",
        precedence: 10_000,
        method: "ByUser",
        from: EVERYBODY,
        about: About::Everything,
    },
];

/// The objects of all levels.
pub(crate) fn levels() -> Vec<Value> {
    let exempt = json!({
        "type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
    });
    let mut levels = vec![object("PriorityLevelConfiguration", "exempt", &exempt)];
    levels.extend(LEVELS.iter().map(|(name, shares, lendable, queues)| {
        let response = match queues {
            None => json!({"type": "Reject"}),
            Some((queues, hand)) => json!({"type": "Queue", "queuing": {
                "queues": queues, "handSize": hand, "queueLengthLimit": QUEUE_LENGTH,
            }}),
        };
        let spec = json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": shares, "lendablePercent": lendable,
            "limitResponse": response,
        }});
        object("PriorityLevelConfiguration", name, &spec)
    }));
    levels
}

/// The objects of all schemas.
pub(crate) fn schemas() -> Vec<Value> {
    SCHEMAS.iter().map(Schema::object).collect()
}

/// The levels that are there even if nobody stores them.
pub(super) fn mandatory_levels() -> impl Iterator<Item = LevelSpec> {
    let levels = levels().into_iter();
    levels.filter_map(|level| LevelSpec::of(&level)).filter(|l| MANDATORY.contains(&&*l.name))
}

/// The schemas that are there even if nobody stores them: the first and the last.
pub(super) fn mandatory_schemas() -> [FlowSchema; 2] {
    let [first, .., last] = &SCHEMAS;
    [first, last].map(|schema| FlowSchema::of(&schema.object()))
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": kind,
        "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}}, "spec": spec,
    })
}

impl Schema {
    fn object(&self) -> Value {
        let mut rule = json!({"subjects": self.from.subjects()});
        let resource = |verbs: &[&str], groups: &[&str], resources: &[&str], cluster: bool| {
            let mut rule = json!({
                "verbs": verbs, "apiGroups": groups, "resources": resources, "namespaces": ["*"],
            });
            if cluster {
                rule["clusterScope"] = true.into();
            }
            rule
        };
        let leases = |verbs: &[&str]| resource(verbs, &["coordination.k8s.io"], &["leases"], false);
        match self.about {
            About::Everything => {
                rule["resourceRules"] = json!([resource(&["*"], &["*"], &["*"], true)]);
                rule["nonResourceRules"] = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
            }
            About::Probes => {
                let paths = ["/healthz", "/readyz", "/livez"];
                rule["nonResourceRules"] = json!([{"verbs": ["get"], "nonResourceURLs": paths}]);
            }
            About::Leases => {
                rule["resourceRules"] = json!([leases(&["get", "create", "update"])]);
            }
            About::NodesAndLeases => {
                let nodes = resource(&["*"], &[""], &["nodes", "nodes/status"], true);
                rule["resourceRules"] = json!([nodes, leases(&["*"])]);
            }
        }
        let mut spec = json!({
            "matchingPrecedence": self.precedence,
            "priorityLevelConfiguration": {"name": self.level},
            "rules": [rule],
        });
        if !self.method.is_empty() {
            spec["distinguisherMethod"] = json!({"type": self.method});
        }
        object("FlowSchema", self.name, &spec)
    }
}

impl From {
    fn subjects(&self) -> Vec<Value> {
        let user = |name: &&str| json!({"kind": "User", "user": {"name": name}});
        match self {
            Self::Groups(names) => {
                let group = |name: &&str| json!({"kind": "Group", "group": {"name": name}});
                names.iter().map(group).collect()
            }
            Self::Users(names) => names.iter().map(user).collect(),
            Self::System(users) => {
                let accounts = json!({"kind": "ServiceAccount", "serviceAccount": {
                    "namespace": "kube-system", "name": "*",
                }});
                users.iter().map(user).chain([accounts]).collect()
            }
        }
    }
}
