//! What a Node says about itself.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ContainerImage, Node, NodeAddress, NodeCondition, NodeFeatures, NodeRuntimeHandler,
    NodeRuntimeHandlerFeatures, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Value, json};
use steersman::Impersonation;
use steersman_scheduler::framework::Resources;
use tokio::sync::watch;

use crate::addresses::{Block, node_address};
use crate::families::IpFamilies;
use crate::groups::Shape;
use crate::standing::is_extended;

/// The version that nodes claim to run. What follows a plus does not count, as it would after a minus:
/// then it were one that came before.
pub(crate) const KUBELET_VERSION: &str = "v1.36.0+steersman";
/// What not every kubelet can do, and these can.
pub(crate) const FEATURES: [&str; 3] = [
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
];
/// On a Node to whose machine a controller attaches volumes.
const ATTACHES: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
/// The labels that a machine keeps right, if it has them.
const OWN: [&str; 11] = [
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
];
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

/// A machine that Pods run on.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The name of its Node.
    pub(crate) name: String,
    /// Who its agent is to the cluster, unless its client is that already.
    pub(crate) agent: Option<Impersonation>,
    /// Its own addresses.
    pub(crate) addresses: Vec<String>,
    pub(crate) network: Network,
    /// What it has.
    pub(crate) capacity: BTreeMap<String, String>,
    /// What of it Pods can have.
    pub(crate) allocatable: BTreeMap<String, String>,
    /// What it is made of.
    pub(crate) system: NodeSystemInfo,
    /// What not every kubelet can do, and this one can.
    pub(crate) features: Vec<String>,
    /// How it is, if that changes.
    pub(crate) health: Option<watch::Receiver<Health>>,
    /// What makes it differ from others.
    pub(crate) shape: Shape,
}

/// Who gives Pods their addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Network {
    /// The agent does, of the block of the machine with this number.
    Simulated {
        /// Which of the machines it is.
        index: u32,
        /// How many Pods the largest of them can run: blocks of one size do not overlap.
        room: u32,
        /// Of which families addresses are.
        families: IpFamilies,
    },
    /// The runtime does.
    OfRuntime,
}

/// How a machine is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Health {
    pub(crate) conditions: Vec<Finding>,
    /// The images that are there.
    pub(crate) images: Vec<ContainerImage>,
    pub(crate) abilities: Abilities,
}

/// What a container runtime can do, as far as it says so.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Abilities {
    /// Its ways to run Pods.
    pub(crate) handlers: Vec<NodeRuntimeHandler>,
    /// Whether containers are in no groups but those that their Pod names, if it asks for that.
    pub(crate) strict_groups: Option<bool>,
}

impl Abilities {
    /// Those of containers that exist only as objects: nothing keeps them from anything.
    fn simulated() -> Self {
        let features = NodeRuntimeHandlerFeatures {
            recursive_read_only_mounts: Some(true),
            user_namespaces: Some(true),
        };
        let features = Some(features);
        let handlers = vec![NodeRuntimeHandler { name: Some(String::new()), features }];
        Self { handlers, strict_groups: Some(true) }
    }
}

/// What a condition of a Node says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) type_: &'static str,
    pub(crate) holds: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
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

/// A version of a kernel, as far as it matters to Pods.
pub(crate) type Kernel = (u32, u32);

impl Machine {
    /// One that exists only as an object.
    pub(crate) fn simulated(
        name: String,
        index: u32,
        capacity: BTreeMap<String, String>,
        families: IpFamilies,
    ) -> Self {
        Self {
            agent: Some(agent(&name)),
            addresses: families.of(node_address(index)),
            network: Network::Simulated { index, room: pods_of(&capacity), families },
            allocatable: capacity.clone(),
            capacity,
            system: simulated_system(&name),
            features: FEATURES.map(str::to_owned).into(),
            health: None,
            shape: Shape::default(),
            name,
        }
    }

    /// The addresses of its Pods; where the runtime gives them, as many places.
    pub(crate) fn pod_addresses(&self) -> Block {
        match self.network {
            Network::Simulated { index, room, .. } => Block::of_node(index, room),
            Network::OfRuntime => Block::of_node(0, self.max_pods()),
        }
    }

    /// How many Pods it can run.
    pub(crate) fn max_pods(&self) -> u32 {
        pods_of(&self.capacity)
    }

    /// Leaves room for so many addresses of Pods.
    pub(crate) fn make_room(&mut self, pods: u32) {
        if let Network::Simulated { room, .. } = &mut self.network {
            *room = pods;
        }
    }

    /// What it has of what it says that it has something else of.
    pub(crate) fn real_amounts(&self) -> impl Iterator<Item = (String, Quantity)> {
        let real = self.capacity.iter().filter(|(name, _)| self.shape.claims.contains_key(*name));
        real.map(|(name, amount)| (name.clone(), Quantity(amount.clone())))
    }

    /// Whether it is a machine only in name.
    fn is_simulated(&self) -> bool {
        matches!(self.network, Network::Simulated { .. })
    }

    /// The version of its kernel; none if it has none, and then it can do what any can.
    pub(crate) fn kernel(&self) -> Option<Kernel> {
        let mut numbers = self.system.kernel_version.split('.').map(|part| {
            let end = part.find(|char: char| !char.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse().unwrap_or_default()
        });
        let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        (!self.is_simulated()).then_some(version)
    }

    /// Whether its containers are in no groups but those that their Pod names, if it asks for that.
    pub(crate) fn has_strict_groups(&self) -> bool {
        self.abilities().strict_groups == Some(true)
    }

    fn abilities(&self) -> Abilities {
        match &self.health {
            Some(health) => health.borrow().abilities.clone(),
            None => Abilities::simulated(),
        }
    }

    /// What Pods can have of it, whatever it says that it has.
    pub(crate) fn allocatable_resources(&self) -> Resources {
        let all = self.allocatable.iter();
        let all = all.map(|(name, amount)| (name.clone(), Quantity(amount.clone())));
        Resources::of(Some(&all.collect()))
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
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let labels = labels.into_iter().chain(self.shape.labels.clone()).collect();
        let taints = Some(self.shape.taints.clone()).filter(|taints| !taints.is_empty());
        let spec = match self.network {
            Network::Simulated { families, .. } => {
                let cidrs = self.pod_addresses().cidrs(families);
                NodeSpec {
                    pod_cidr: cidrs.first().cloned(),
                    pod_cidrs: Some(cidrs),
                    provider_id: Some(format!("simulated://{}", self.name)),
                    taints,
                    ..NodeSpec::default()
                }
            }
            Network::OfRuntime => NodeSpec::default(),
        };
        // Whoever attaches volumes to machines is told whose business that is.
        let annotations = (!self.is_simulated())
            .then(|| [(ATTACHES.to_owned(), "true".to_owned())].into_iter().collect());
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels),
                annotations,
                ..ObjectMeta::default()
            },
            spec: Some(spec),
            status: Some(self.status(None, now)),
        }
    }

    /// What is put right in the metadata of a Node that is there already, if anything is: a machine knows
    /// best what it is and who attaches volumes to it. Other labels are whoever's they are.
    pub(crate) fn correction(&self, found: &Node, now: &Time) -> Option<Value> {
        let own = self.node(now).metadata;
        let labels = own.labels.into_iter().flatten().filter(|(key, _)| OWN.contains(&&**key));
        let known = found.metadata.labels.as_ref();
        let differs =
            |(key, value): &(String, String)| known.and_then(|known| known.get(key)) != Some(value);
        let labels: BTreeMap<String, String> = labels.filter(differs).collect();
        let attaches = |of: Option<&BTreeMap<String, String>>| {
            of.and_then(|annotations| annotations.get(ATTACHES)).cloned()
        };
        let (wanted, found) =
            (attaches(own.annotations.as_ref()), attaches(found.metadata.annotations.as_ref()));
        let mut correction = serde_json::Map::new();
        if !labels.is_empty() {
            correction.insert("labels".into(), json!(labels));
        }
        if wanted != found {
            correction.insert("annotations".into(), json!({ATTACHES: wanted}));
        }
        (!correction.is_empty()).then_some(Value::Object(correction))
    }

    /// The Node's status as it is now. What others have added to it stays, and conditions that
    /// have not changed keep their time.
    pub(crate) fn status(&self, current: Option<&NodeStatus>, now: &Time) -> NodeStatus {
        let mut status = current.cloned().unwrap_or_default();
        let address = |type_: &str, address| NodeAddress { type_: type_.into(), address };
        let own = self.addresses.iter().map(|own| address("InternalIP", own.clone()));
        let hostname = address("Hostname", self.name.clone());
        status.addresses = Some(own.chain([hostname]).collect());
        for (resources, own) in
            [(&mut status.capacity, &self.capacity), (&mut status.allocatable, &self.allocatable)]
        {
            let own = own.iter().chain(&self.shape.claims);
            let own = own.map(|(name, amount)| (name.clone(), Quantity(amount.clone())));
            resources.get_or_insert_default().extend(own);
        }
        let capacity = status.capacity.get_or_insert_default();
        share(capacity, status.allocatable.get_or_insert_default(), |name| {
            self.allocatable.contains_key(name) || self.shape.claims.contains_key(name)
        });
        status.node_info = Some(self.system.clone());
        status.declared_features = Some(self.features.clone());
        let Abilities { handlers, strict_groups } = self.abilities();
        status.runtime_handlers = Some(handlers).filter(|handlers| !handlers.is_empty());
        if let Some(strict) = strict_groups {
            status.features = Some(NodeFeatures { supplemental_groups_policy: Some(strict) });
        }
        let health = self.health.as_ref().map(|health| health.borrow().clone());
        if let Some(health) = &health {
            status.images = Some(health.images.clone());
        }
        let findings = health.map_or_else(healthy, |health| health.conditions);
        report(status.conditions.get_or_insert_default(), &findings, now);
        status
    }
}

/// Lets Pods have all that others say that there is beside what is the machine's `own`, and no extended
/// resources that nobody says so of any more.
fn share(
    capacity: &BTreeMap<String, Quantity>,
    allocatable: &mut BTreeMap<String, Quantity>,
    own: impl Fn(&str) -> bool,
) {
    allocatable.retain(|name, _| capacity.contains_key(name) || !is_extended(name));
    let others = capacity.iter().filter(|(name, _)| !own(name));
    allocatable.extend(others.map(|(name, amount)| (name.clone(), amount.clone())));
}

/// How many Pods a machine can run that has this much.
fn pods_of(capacity: &BTreeMap<String, String>) -> u32 {
    capacity.get("pods").and_then(|pods| pods.parse().ok()).unwrap_or(110)
}

/// What a healthy kubelet reports.
pub(crate) fn healthy() -> Vec<Finding> {
    let finding = |(type_, status, reason, message): (_, &str, _, &str)| Finding {
        type_,
        holds: status == "True",
        reason,
        message: message.to_owned(),
    };
    CONDITIONS.map(finding).into()
}

fn simulated_system(name: &str) -> NodeSystemInfo {
    NodeSystemInfo {
        architecture: architecture().into(),
        operating_system: "linux".into(),
        os_image: "Steersman simulated node".into(),
        kernel_version: "simulated".into(),
        kubelet_version: KUBELET_VERSION.into(),
        container_runtime_version: "simulated://0.1.0".into(),
        machine_id: name.to_owned(),
        system_uuid: name.to_owned(),
        boot_id: name.to_owned(),
        ..NodeSystemInfo::default()
    }
}

/// Brings the conditions that a kubelet reports up to date.
fn report(conditions: &mut Vec<NodeCondition>, findings: &[Finding], now: &Time) {
    for Finding { type_, holds, reason, message } in findings {
        let (type_, status) = (*type_, if *holds { "True" } else { "False" });
        let same = conditions.iter().find(|c| c.type_ == type_ && c.status == status);
        let since = same.and_then(|condition| condition.last_transition_time.clone());
        conditions.retain(|condition| condition.type_ != type_);
        conditions.push(NodeCondition {
            type_: type_.into(),
            status: status.into(),
            reason: Some((*reason).into()),
            message: Some(message.clone()),
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
pub(crate) fn architecture() -> &'static str {
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
        Machine::simulated("node-2".into(), 2, capacity, IpFamilies::default())
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
    fn a_real_machine_says_who_attaches_volumes_and_what_its_runtime_cannot_do() {
        let now = time("2030-01-01T12:00:00Z");
        let simulated = machine().node(&now);
        assert_eq!(simulated.metadata.annotations, None);
        assert!(machine().has_strict_groups() && machine().kernel().is_none());
        let strict_groups = Some(false);
        let abilities = Abilities { strict_groups, ..Abilities::default() };
        let (says, health) = watch::channel(Health { abilities, ..Health::default() });
        let health = Some(health);
        let mut real = Machine { network: Network::OfRuntime, health, ..machine() };
        real.system.kernel_version = "6.1.0-18-cloud-amd64".into();
        let node = real.node(&now);
        let annotations = node.metadata.annotations.unwrap();
        let key = "volumes.kubernetes.io/controller-managed-attach-detach";
        assert_eq!(annotations[key], "true");
        let features = node.status.unwrap().features.unwrap();
        assert_eq!(features.supplemental_groups_policy, Some(false));
        assert_eq!(real.kernel(), Some((6, 1)));
        assert!(!real.has_strict_groups());
        let handlers = |node: &Node| node.status.as_ref().unwrap().runtime_handlers.clone();
        assert_eq!(handlers(&real.node(&now)), None, "it does not tell them");
        says.send_modify(|health| health.abilities = Abilities::simulated());
        assert!(real.has_strict_groups());
        assert_eq!(handlers(&real.node(&now)), handlers(&simulated));
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
        assert!(says_the_same(&status, &machine().status(Some(&status), &now)));
    }

    #[test]
    fn what_others_say_that_there_is_pods_can_have_until_nobody_says_so() {
        let now = time("2030-01-01T12:00:00Z");
        let mut current = machine().status(None, &now);
        let amount = |text: &str| Quantity(text.into());
        current.capacity.as_mut().unwrap().insert("example.com/dongle".into(), amount("4"));
        current.allocatable.as_mut().unwrap().insert("example.com/gone".into(), amount("1"));
        let shared = machine().status(Some(&current), &now);
        let allocatable = shared.allocatable.as_ref().unwrap();
        assert_eq!(allocatable["example.com/dongle"].0, "4");
        assert!(!allocatable.contains_key("example.com/gone"));
        let mut kept = machine();
        kept.allocatable.insert("memory".into(), "30Gi".into());
        assert_eq!(kept.status(Some(&current), &now).allocatable.unwrap()["memory"].0, "30Gi");
        current = shared;
        current.capacity.as_mut().unwrap().remove("example.com/dongle");
        let shared = machine().status(Some(&current), &now);
        assert!(!shared.allocatable.unwrap().contains_key("example.com/dongle"));
    }

    #[test]
    fn a_node_that_is_there_already_is_put_right_in_what_its_machine_knows() {
        let now = time("2030-01-01T12:00:00Z");
        let mut found = machine().node(&now);
        assert_eq!(machine().correction(&found, &now), None);
        let labels = found.metadata.labels.as_mut().unwrap();
        labels.insert("kubernetes.io/arch".into(), "other".into());
        labels.insert("disk".into(), "ssd".into());
        let right = json!({"labels": {"kubernetes.io/arch": architecture()}});
        assert_eq!(machine().correction(&found, &now), Some(right));
        let real = Machine { network: Network::OfRuntime, ..machine() };
        let attaches = json!({ATTACHES: "true"});
        let correction = real.correction(&machine().node(&now), &now);
        assert_eq!(correction, Some(json!({"annotations": attaches})));
        let correction = machine().correction(&real.node(&now), &now);
        assert_eq!(correction, Some(json!({"annotations": {ATTACHES: null}})));
    }
}
