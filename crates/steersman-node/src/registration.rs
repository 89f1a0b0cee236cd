//! What a simulated Node says about itself.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use steersman::Impersonation;

use crate::addresses::{Block, node_address};
use crate::families::IpFamilies;

/// The version that simulated nodes claim to run.
const KUBELET_VERSION: &str = "v1.36.0-steersman";
/// What not every kubelet can do, and these can: it is all the same to a simulated container.
const FEATURES: [&str; 2] =
    ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"];
/// Type, status, reason and message of what a healthy kubelet reports.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

/// One simulated machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The name of its Node.
    pub(crate) name: String,
    /// Which of the machines it is.
    pub(crate) index: u32,
    /// What it offers.
    pub(crate) capacity: BTreeMap<String, String>,
    /// Who its agent is to the cluster.
    pub(crate) agent: Impersonation,
    /// Of which families its addresses are.
    pub(crate) families: IpFamilies,
}

/// Who the agent of a node is: what it may do, Kubernetes' node authorizer decides.
///
/// # Panics
///
/// If no node can have the name.
pub(crate) fn agent(node: &str) -> Impersonation {
    let agent = Impersonation::new(&format!("system:node:{node}"), &["system:nodes"]);
    agent.expect("the names of nodes fit into headers")
}

impl Machine {
    /// The addresses of its Pods.
    pub(crate) fn pod_addresses(&self) -> Block {
        Block::of_node(self.index, self.max_pods())
    }

    /// How many Pods it can run.
    pub(crate) fn max_pods(&self) -> u32 {
        self.capacity.get("pods").and_then(|pods| pods.parse().ok()).unwrap_or(110)
    }

    /// Its own addresses.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.families.of(node_address(self.index))
    }

    /// The Node as it is registered.
    pub(crate) fn node(&self, now: &Time) -> Node {
        let labels = [
            ("kubernetes.io/hostname", self.name.as_str()),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", architecture()),
            ("beta.kubernetes.io/os", "linux"),
            ("beta.kubernetes.io/arch", architecture()),
        ];
        let cidrs = self.pod_addresses().cidrs(self.families);
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels.map(|(key, value)| (key.into(), value.into())).into()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                pod_cidr: cidrs.first().cloned(),
                pod_cidrs: Some(cidrs),
                provider_id: Some(format!("simulated://{}", self.name)),
                ..NodeSpec::default()
            }),
            status: Some(self.status(None, now)),
        }
    }

    /// The Node's status as it is now. What others have added to it stays, and conditions that
    /// have not changed keep their time.
    pub(crate) fn status(&self, current: Option<&NodeStatus>, now: &Time) -> NodeStatus {
        let mut status = current.cloned().unwrap_or_default();
        let address = |type_: &str, address| NodeAddress { type_: type_.into(), address };
        let own = self.addresses().into_iter().map(|own| address("InternalIP", own));
        let hostname = address("Hostname", self.name.clone());
        status.addresses = Some(own.chain([hostname]).collect());
        for resources in [&mut status.capacity, &mut status.allocatable] {
            let own = self.capacity.iter();
            let own = own.map(|(name, amount)| (name.clone(), Quantity(amount.clone())));
            resources.get_or_insert_default().extend(own);
        }
        status.node_info = Some(self.system());
        status.declared_features = Some(FEATURES.map(str::to_owned).into());
        report(status.conditions.get_or_insert_default(), now);
        status
    }

    fn system(&self) -> NodeSystemInfo {
        NodeSystemInfo {
            architecture: architecture().into(),
            operating_system: "linux".into(),
            os_image: "Steersman simulated node".into(),
            kernel_version: "simulated".into(),
            kubelet_version: KUBELET_VERSION.into(),
            container_runtime_version: "simulated://0.1.0".into(),
            machine_id: self.name.clone(),
            system_uuid: self.name.clone(),
            boot_id: self.name.clone(),
            ..NodeSystemInfo::default()
        }
    }
}

/// Brings the conditions that a kubelet reports up to date.
fn report(conditions: &mut Vec<NodeCondition>, now: &Time) {
    for (type_, status, reason, message) in CONDITIONS {
        let same = conditions.iter().find(|c| c.type_ == type_ && c.status == status);
        let since = same.and_then(|condition| condition.last_transition_time.clone());
        conditions.retain(|condition| condition.type_ != type_);
        conditions.push(NodeCondition {
            type_: type_.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_heartbeat_time: Some(now.clone()),
            last_transition_time: since.or_else(|| Some(now.clone())),
        });
    }
}

/// Whether two statuses say the same, apart from when it was said.
pub(crate) fn says_the_same(a: &NodeStatus, b: &NodeStatus) -> bool {
    let timeless = |status: &NodeStatus| {
        let mut status = status.clone();
        for condition in status.conditions.iter_mut().flatten() {
            condition.last_heartbeat_time = None;
        }
        status
    };
    timeless(a) == timeless(b)
}

/// This machine's architecture, as Kubernetes names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let capacity = [("cpu", "8"), ("memory", "32Gi"), ("pods", "110")];
        let capacity = capacity.map(|(name, amount)| (name.into(), amount.into())).into();
        let families = IpFamilies::default();
        Machine { name: "node-2".into(), index: 2, capacity, agent: agent("node-2"), families }
    }

    fn time(text: &str) -> Time {
        Time(text.parse().unwrap())
    }

    #[test]
    fn a_node_is_registered_ready_with_its_capacity_and_addresses() {
        let node = machine().node(&time("2030-01-01T12:00:00Z"));
        assert_eq!(node.spec.unwrap().pod_cidr.as_deref(), Some("10.244.2.0/24"));
        assert_eq!(node.metadata.labels.unwrap()["kubernetes.io/hostname"], "node-2");
        let status = node.status.unwrap();
        assert_eq!(status.allocatable.unwrap()["memory"].0, "32Gi");
        assert_eq!(status.addresses.unwrap()[0].address, "172.18.0.4");
        assert_eq!(status.declared_features.unwrap(), FEATURES);
        let ready = status.conditions.unwrap().into_iter().find(|c| c.type_ == "Ready").unwrap();
        assert_eq!(ready.status, "True");
    }

    #[test]
    fn a_heartbeat_moves_only_the_heartbeat_time() {
        let (then, now) = (time("2030-01-01T12:00:00Z"), time("2030-01-01T12:05:00Z"));
        let before = machine().status(None, &then);
        let after = machine().status(Some(&before), &now);
        let condition = &after.conditions.as_ref().unwrap()[0];
        assert_eq!(condition.last_heartbeat_time, Some(now));
        assert_eq!(condition.last_transition_time, Some(then));
        assert!(says_the_same(&before, &after));
    }

    #[test]
    fn what_others_added_to_the_status_stays() {
        let now = time("2030-01-01T12:00:00Z");
        let mut current = machine().status(None, &now);
        let gpu = ("example.com/gpu".to_owned(), Quantity("4".into()));
        current.capacity.get_or_insert_default().extend([gpu]);
        let network = NodeCondition { type_: "NetworkUnavailable".into(), ..Default::default() };
        current.conditions.get_or_insert_default().insert(0, network);
        let status = machine().status(Some(&current), &now);
        assert_eq!(status.capacity.as_ref().unwrap()["example.com/gpu"].0, "4");
        assert_eq!(status.conditions.as_ref().unwrap().len(), 5);
        assert!(says_the_same(&current, &status));
    }
}
