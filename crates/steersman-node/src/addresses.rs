//! Addresses of nodes and Pods: a block per node, one address per Pod, and each port of a node for
//! one Pod.
//!
//! A Pod has what it was given from then on until it is seen to have ended or to be gone; what the
//! Pods say that were there before is taken in as it is heard of. So nobody reads all Pods of a
//! node for each that comes to it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use steersman_scheduler::HostPort;
use steersman_scheduler::framework::{PodRequests, Resources};

use crate::families::{IpFamilies, fourth};

/// Where the blocks of Pod addresses begin.
const PODS: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 0);
/// How many addresses there are from there on, to the end of 10.0.0.0/8.
const PODS_MAX: u32 = 12 << 16;
/// Where the others begin, of thousands of nodes: 100.64.0.0/10, which no network routes.
const MORE_PODS: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
/// Where the addresses of nodes begin.
const NODES: Ipv4Addr = Ipv4Addr::new(172, 18, 0, 2);

/// A block of Pod addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    first: u32,
    /// How many bits tell the block's addresses apart.
    bits: u32,
}

impl Block {
    /// The block of the node with this index, with room for so many Pods.
    pub(crate) fn of_node(index: u32, pods: u32) -> Self {
        let size = pods.saturating_add(2).clamp(256, 1 << 16).next_power_of_two();
        let offset = index.wrapping_mul(size);
        let first = match offset.checked_sub(PODS_MAX) {
            Some(more) => u32::from(MORE_PODS).wrapping_add(more),
            None => u32::from(PODS) + offset,
        };
        Self { first, bits: size.trailing_zeros() }
    }

    /// In the notation of `spec.podCIDRs`.
    pub(crate) fn cidrs(self, families: IpFamilies) -> Vec<String> {
        families.ranges(Ipv4Addr::from(self.first), self.bits)
    }

    /// Every address that a Pod can have: neither the first, which names the block, nor the last.
    fn hosts(self) -> impl Iterator<Item = Ipv4Addr> {
        let last = (1_u32 << self.bits) - 1;
        (1..last).map(move |offset| Ipv4Addr::from(self.first.wrapping_add(offset)))
    }
}

/// The address of the node with this index.
pub(crate) fn node_address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(NODES).wrapping_add(index))
}

/// Why a node does not take a Pod. Said as a kubelet says it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejection {
    /// It runs as many Pods as it can.
    #[error(
        "Node didn't have enough resource: pods, requested: 1, used: {used}, capacity: {capacity}"
    )]
    OutOfPods {
        /// How many Pods it runs.
        used: usize,
        /// How many it can run.
        capacity: u32,
    },
    /// It says that it has more of something than it has.
    #[error(
        "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, \
         capacity: {capacity}"
    )]
    OutOf {
        /// Of what.
        resource: String,
        /// How much of it the Pod asks for.
        requested: i64,
        /// How much other Pods have.
        used: i64,
        /// How much there is.
        capacity: i64,
    },
    /// Another Pod has a port that it asks for.
    #[error(
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    )]
    NodePorts,
    /// It asks for something that the node cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// The node is short of something.
    #[error("{0}")]
    Evicted(String),
}

impl Rejection {
    /// The reason in the Pod's status.
    pub(crate) fn reason(&self) -> Cow<'static, str> {
        match self {
            Self::OutOfPods { .. } => "OutOfpods".into(),
            Self::OutOf { resource, .. } => format!("OutOf{resource}").into(),
            Self::NodePorts => "NodePorts".into(),
            Self::Unsupported(_) => "UnexpectedAdmissionError".into(),
            Self::Evicted(_) => crate::eviction::REASON.into(),
        }
    }
}

/// Gives out Pod addresses.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<Ledger>);

/// What each Pod has that has not ended.
#[derive(Debug, Default)]
struct Ledger {
    /// By the name of the node, and then by uid.
    nodes: HashMap<Arc<str>, HashMap<Arc<str>, Held>>,
    /// The node of each uid: nobody looks through thousands of nodes for one Pod.
    places: HashMap<Arc<str>, Arc<str>>,
}

/// What a Pod has of its node.
#[derive(Debug)]
struct Held {
    /// None if it says something that is no address.
    address: Option<Ipv4Addr>,
    ports: Vec<HostPort>,
    /// What it asks for, where a node says that it has more than it has.
    asked: Option<Resources>,
}

/// A node that has room for Pods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    /// Its name.
    pub(crate) node: &'a str,
    /// Where its Pods have their addresses.
    pub(crate) block: Block,
    /// How many there can be.
    pub(crate) capacity: u32,
    /// What it has of what it lies about.
    pub(crate) limits: Option<&'a Resources>,
}

impl Ledger {
    fn insert(&mut self, node: &str, uid: &str, held: Held) {
        let node = match self.nodes.get_key_value(node) {
            Some((node, _)) => Arc::clone(node),
            None => node.into(),
        };
        let uid: Arc<str> = uid.into();
        let before = self.places.insert(Arc::clone(&uid), Arc::clone(&node));
        if let Some(before) = before.filter(|before| *before != node) {
            self.nodes.get_mut(&before).and_then(|pods| pods.remove(&uid));
        }
        self.nodes.entry(node).or_default().insert(uid, held);
    }

    fn remove(&mut self, uid: &str) {
        if let Some(node) = self.places.remove(uid) {
            self.nodes.get_mut(&node).and_then(|pods| pods.remove(uid));
        }
    }
}

impl Addresses {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address for a Pod that has none yet: the lowest that none of the Pods has that run on
    /// the node.
    pub(crate) fn reserve(&self, pod: &Pod, room: Room<'_>) -> Result<Ipv4Addr, Rejection> {
        let mut ledger = self.ledger();
        let nobody = HashMap::new();
        let here = ledger.nodes.get(room.node).unwrap_or(&nobody);
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if let Some(address) = here.get(uid).and_then(|held| held.address) {
            return Ok(address);
        }
        let taken: HashSet<Ipv4Addr> = here.values().filter_map(|held| held.address).collect();
        let has_room = u32::try_from(here.len()).is_ok_and(|used| used < room.capacity);
        let free = room.block.hosts().find(|address| !taken.contains(address));
        let full = Rejection::OutOfPods { used: here.len(), capacity: room.capacity };
        let address = free.filter(|_| has_room).ok_or(full)?;
        let ports = HostPort::all_of(pod);
        let mut used_ports = here.values().flat_map(|held| &held.ports);
        if used_ports.any(|used| ports.iter().any(|port| port.conflicts(used))) {
            return Err(Rejection::NodePorts);
        }
        let asked = room.limits.map(|_| PodRequests::of(pod).asked);
        if let Some((limits, asked)) = room.limits.zip(asked.as_ref()) {
            check_limits(limits, asked, here.values().filter_map(|held| held.asked.as_ref()))?;
        }
        ledger.insert(room.node, uid, Held { address: Some(address), ports, asked });
        Ok(address)
    }

    /// Takes in what a Pod says that runs on this node, and what it asks for if the node lies.
    pub(crate) fn observe(&self, pod: &Pod, node: &str, lies: bool) {
        let Some(address) = address_of(pod) else { return };
        let asked = lies.then(|| PodRequests::of(pod).asked);
        let held = Held { address: fourth(address), ports: HostPort::all_of(pod), asked };
        self.ledger().insert(node, pod.metadata.uid.as_deref().unwrap_or_default(), held);
    }

    /// Takes back what a Pod had that has ended or is gone.
    pub(crate) fn release(&self, uid: &str) {
        self.ledger().remove(uid);
    }
}

/// Whether there is as much as a Pod asks for beside others.
pub(crate) fn check_limits<'a>(
    limits: &Resources,
    asked: &Resources,
    others: impl Iterator<Item = &'a Resources>,
) -> Result<(), Rejection> {
    let mut taken = Resources::default();
    others.for_each(|other| taken.add(other));
    for (resource, capacity) in limits.iter() {
        let (requested, used) = (asked.get(resource), taken.get(resource));
        if requested > 0 && used.saturating_add(requested) > capacity {
            let resource = resource.to_owned();
            return Err(Rejection::OutOf { resource, requested, used, capacity });
        }
    }
    Ok(())
}

fn address_of(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref().filter(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, address: Option<&str>) -> Pod {
        let pod = json!({"metadata": {"uid": uid}, "status": {"podIP": address}});
        serde_json::from_value(pod).unwrap()
    }

    /// The room on a node for so many Pods.
    fn room(index: u32, capacity: u32) -> Room<'static> {
        let node = ["node-0", "node-1", "node-2"][index as usize];
        Room { node, block: Block::of_node(index, capacity), capacity, limits: None }
    }

    #[test]
    fn blocks_follow_each_other_and_are_large_enough() {
        let cidrs = |index, pods| Block::of_node(index, pods).cidrs(IpFamilies::V4);
        assert_eq!(cidrs(0, 110), ["10.244.0.0/24"]);
        assert_eq!(cidrs(3, 110), ["10.244.3.0/24"]);
        assert_eq!(cidrs(256, 110), ["10.245.0.0/24"]);
        assert_eq!(cidrs(1, 500), ["10.244.2.0/23"]);
        assert_eq!(cidrs(3_071, 110), ["10.255.255.0/24"]);
        assert_eq!(cidrs(3_072, 110), ["100.64.0.0/24"]);
        assert_eq!(cidrs(4_999, 110), ["100.71.135.0/24"]);
    }

    #[test]
    fn pods_get_the_lowest_free_address_and_keep_it_until_they_are_gone() {
        let addresses = Addresses::default();
        addresses.observe(&pod("old", Some("10.244.0.1")), "node-0", false);
        let of = |uid| addresses.reserve(&pod(uid, None), room(0, 110)).unwrap().to_string();
        assert_eq!(of("a"), "10.244.0.2");
        assert_eq!(of("a"), "10.244.0.2");
        assert_eq!(of("b"), "10.244.0.3");
        addresses.release("a"); // its Pod is gone
        assert_eq!(of("c"), "10.244.0.2");
    }

    #[test]
    fn a_pod_that_is_gone_leaves_nothing_behind() {
        let addresses = Addresses::default();
        for (uid, node) in [("a", 0), ("b", 1), ("c", 2)] {
            addresses.reserve(&pod(uid, None), room(node, 110)).unwrap();
        }
        // A Pod is on one node; whoever says otherwise last is right.
        addresses.observe(&pod("c", Some("10.244.1.9")), "node-1", false);
        for uid in ["a", "b", "c", "c", "unknown"] {
            addresses.release(uid);
        }
        let ledger = addresses.ledger();
        assert!(ledger.places.is_empty() && ledger.nodes.values().all(HashMap::is_empty));
    }

    #[test]
    fn a_full_block_is_an_error() {
        let addresses = Addresses::default();
        let room = Room { capacity: 1000, ..room(0, 1) };
        for n in 0..254 {
            addresses.reserve(&pod(&n.to_string(), None), room).unwrap();
        }
        assert!(addresses.reserve(&pod("one more", None), room).is_err());
    }

    #[test]
    fn a_node_runs_no_more_pods_than_it_can() {
        let addresses = Addresses::default();
        let reserve = |node, uid| addresses.reserve(&pod(uid, None), room(node, 3));
        addresses.observe(&pod("old", Some("172.18.0.2")), "node-0", false); // in the node's own network
        reserve(0, "a").unwrap();
        addresses.observe(&pod("a", Some("10.244.0.1")), "node-0", false); // it counts once
        reserve(1, "elsewhere").unwrap();
        reserve(0, "b").unwrap();
        let full = reserve(0, "c").unwrap_err();
        assert_eq!(full, Rejection::OutOfPods { used: 3, capacity: 3 });
        assert!(reserve(0, "b").is_ok(), "it has its place already");
    }

    #[test]
    fn a_node_that_lies_refuses_what_it_has_not() {
        let amount = k8s_openapi::apimachinery::pkg::api::resource::Quantity("2".to_owned());
        let amounts = [("cpu".to_owned(), amount)].into();
        let limits = Resources::of(Some(&amounts));
        let asking = |uid: &str, cpu: &str| -> Pod {
            let resources = json!({"requests": {"cpu": cpu, "memory": "1Ti"}});
            let containers = json!([{"name": "c", "resources": resources}]);
            let pod = json!({"metadata": {"uid": uid}, "spec": {"containers": containers}});
            serde_json::from_value(pod).unwrap()
        };
        let addresses = Addresses::default();
        let reserve = |uid: &str, cpu: &str| {
            let room = Room { limits: Some(&limits), ..room(0, 110) };
            addresses.reserve(&asking(uid, cpu), room)
        };
        reserve("a", "1500m").unwrap();
        let refused = reserve("b", "1").unwrap_err();
        assert_eq!(refused.reason(), "OutOfcpu");
        let message = "Node didn't have enough resource: cpu, requested: 1000, used: 1500, \
                       capacity: 2000";
        assert_eq!(refused.to_string(), message);
        reserve("c", "500m").unwrap();
        addresses.release("a");
        reserve("b", "1").unwrap();
    }

    #[test]
    fn a_port_of_a_node_is_given_to_one_pod() {
        let addresses = Addresses::default();
        let pod = |uid: &str, address: Option<&str>| {
            let ports = json!([{"containerPort": 80, "hostPort": 8080}]);
            let pod = json!({
                "metadata": {"uid": uid},
                "spec": {"containers": [{"name": "c", "ports": ports}]},
                "status": {"podIP": address},
            });
            serde_json::from_value::<Pod>(pod).unwrap()
        };
        let reserve = |node, uid| addresses.reserve(&pod(uid, None), room(node, 110));
        addresses.observe(&pod("old", Some("10.244.1.1")), "node-1", false);
        assert_eq!(reserve(1, "a"), Err(Rejection::NodePorts), "it is in use");
        assert!(reserve(0, "a").is_ok());
        assert_eq!(reserve(0, "b"), Err(Rejection::NodePorts), "it was given a moment ago");
        assert!(reserve(0, "a").is_ok(), "it has its port already");
        assert!(reserve(2, "c").is_ok(), "another node has ports of its own");
    }
}
