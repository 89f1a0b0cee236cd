//! Addresses of nodes and Pods: a block per node, one address per Pod, each port of a node for one
//! Pod, and no more of anything than there is.
//!
//! A Pod has what it was given from then on until it is seen to have ended or to be gone; what the
//! Pods say that were there before is taken in as it is heard of. So nobody reads all Pods of a
//! node for each that comes to it, and what they have together is known.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use steersman_scheduler::HostPort;
use steersman_scheduler::framework::{PodRequests, Resources};

use crate::eviction::is_critical;
use crate::families::{IpFamilies, fourth};
use crate::preemption::{Lack, PODS as PODS_OF_NODE};
use crate::rejection::Rejection;
use crate::standing::{Standing, Standings, without_devices};
use crate::static_pods::is_static;

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

/// Gives out Pod addresses.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    ledger: Mutex<Ledger>,
    /// What Nodes say that decides whom they are given to.
    pub(crate) standings: Standings,
}

/// What each Pod has that has not ended.
#[derive(Debug, Default)]
struct Ledger {
    /// By the name of the node.
    nodes: HashMap<Arc<str>, Occupied>,
    /// The node of each uid: nobody looks through thousands of nodes for one Pod.
    places: HashMap<Arc<str>, Arc<str>>,
}

/// What Pods have of one node.
#[derive(Debug, Default)]
struct Occupied {
    /// By uid.
    pods: HashMap<Arc<str>, Held>,
    /// What all of them ask for together.
    asked: Resources,
}

/// What a Pod has of its node.
#[derive(Debug)]
struct Held {
    /// None if it says something that is no address.
    address: Option<Ipv4Addr>,
    ports: Vec<HostPort>,
    asked: Resources,
    /// Which spec says so.
    generation: Option<i64>,
    /// No server knows it.
    is_static: bool,
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
    /// What it says of itself.
    pub(crate) standing: &'a Standing,
}

impl Held {
    fn of(pod: &Pod, address: Option<Ipv4Addr>) -> Self {
        let PodRequests { asked, ports, .. } = PodRequests::of(&without_devices(pod));
        let generation = pod.metadata.generation;
        Self { address, ports, asked, generation, is_static: is_static(pod) }
    }
}

impl Occupied {
    fn insert(&mut self, uid: Arc<str>, held: Held) {
        self.asked.add(&held.asked);
        if let Some(before) = self.pods.insert(uid, held) {
            self.asked.subtract(&before.asked);
        }
    }

    fn remove(&mut self, uid: &str) {
        if let Some(held) = self.pods.remove(uid) {
            self.asked.subtract(&held.asked);
        }
    }

    /// Whether a Pod can be beside those that are there, in the order in which a kubelet asks.
    fn check(&self, pod: &Pod, held: &Held, room: Room<'_>) -> Result<(), Rejection> {
        let used = self.pods.len();
        // Others have to go for those that the system needs.
        if !is_critical(pod) {
            if !u32::try_from(used).is_ok_and(|used| used < room.capacity) {
                return Err(Rejection::OutOfPods { used, capacity: room.capacity });
            }
            room.standing.limits.check(&held.asked, &self.asked)?;
        }
        room.standing.is_wanted(pod)?;
        let taken = |port: &HostPort| {
            let mut ports = self.pods.values().flat_map(|other| &other.ports);
            ports.any(|other| port.conflicts(other))
        };
        if held.ports.iter().any(taken) {
            return Err(Rejection::NodePorts);
        }
        room.standing.is_tolerated(pod)
    }
}

impl Ledger {
    fn insert(&mut self, node: &str, uid: &str, held: Held) {
        let node = match self.nodes.get_key_value(node) {
            Some((node, _)) => Arc::clone(node),
            None => node.into(),
        };
        let uid: Arc<str> = uid.into();
        let before = self.places.insert(Arc::clone(&uid), Arc::clone(&node));
        if let Some(before) = before.filter(|before| *before != node)
            && let Some(before) = self.nodes.get_mut(&before)
        {
            before.remove(&uid);
        }
        self.nodes.entry(node).or_default().insert(uid, held);
    }

    fn remove(&mut self, uid: &str) {
        if let Some(node) = self.places.remove(uid)
            && let Some(occupied) = self.nodes.get_mut(&node)
        {
            occupied.remove(uid);
        }
    }

    fn held(&self, node: &str, uid: &str) -> Option<&Held> {
        self.nodes.get(node)?.pods.get(uid)
    }
}

impl Addresses {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address that a Pod was given on this node.
    pub(crate) fn given(&self, pod: &Pod, node: &str) -> Option<Ipv4Addr> {
        self.ledger().held(node, uid_of(pod))?.address
    }

    /// An address for a Pod that has none yet: the lowest that none of the Pods has that run on
    /// the node.
    pub(crate) fn reserve(&self, pod: &Pod, room: Room<'_>) -> Result<Ipv4Addr, Rejection> {
        let wanted = Held::of(pod, None);
        let mut ledger = self.ledger();
        if let Some(address) = ledger.held(room.node, uid_of(pod)).and_then(|held| held.address) {
            return Ok(address);
        }
        let nobody = Occupied::default();
        let here = ledger.nodes.get(room.node).unwrap_or(&nobody);
        here.check(pod, &wanted, room)?;
        let taken: HashSet<Ipv4Addr> = here.pods.values().filter_map(|held| held.address).collect();
        let free = room.block.hosts().find(|address| !taken.contains(address));
        let full = Rejection::OutOfPods { used: here.pods.len(), capacity: room.capacity };
        let address = free.ok_or(full)?;
        ledger.insert(room.node, uid_of(pod), Held { address: Some(address), ..wanted });
        Ok(address)
    }

    /// What a node has too little of for a Pod that has nothing of it yet.
    pub(crate) fn lacks(&self, pod: &Pod, room: Room<'_>) -> Vec<Lack> {
        let ledger = self.ledger();
        if ledger.held(room.node, uid_of(pod)).is_some() {
            return Vec::new();
        }
        let nobody = Occupied::default();
        let here = ledger.nodes.get(room.node).unwrap_or(&nobody);
        let mut lacks = room.standing.limits.lacks(&Held::of(pod, None).asked, &here.asked);
        let used = i64::try_from(here.pods.len()).unwrap_or(i64::MAX - 1);
        let capacity = i64::from(room.capacity);
        if used >= capacity {
            lacks.push(Lack { resource: PODS_OF_NODE.into(), amount: used + 1 - capacity });
        }
        lacks
    }

    /// Whether a Pod has something of a node.
    pub(crate) fn holds(&self, node: &str, uid: &str) -> bool {
        self.ledger().held(node, uid).is_some()
    }

    /// Takes in what a Pod says that runs on this node.
    pub(crate) fn observe(&self, pod: &Pod, node: &str) {
        let mut ledger = self.ledger();
        let held = ledger.held(node, uid_of(pod));
        let address = match (address_of(pod), held) {
            (Some(told), _) => fourth(told),
            // It does not say so before it has a sandbox.
            (None, Some(held)) => held.address,
            (None, None) => return,
        };
        let same =
            |held: &Held| held.address == address && held.generation == pod.metadata.generation;
        // Nearly always nothing of this has changed.
        if !held.is_some_and(same) {
            ledger.insert(node, uid_of(pod), Held::of(pod, address));
        }
    }

    /// Takes back what a Pod had that has ended or is gone.
    pub(crate) fn release(&self, uid: &str) {
        self.ledger().remove(uid);
    }

    /// The Pods of a node that the server must know, by uid.
    pub(crate) fn heard_of(&self, node: &str) -> Vec<Arc<str>> {
        let ledger = self.ledger();
        let pods = ledger.nodes.get(node).into_iter().flat_map(|here| &here.pods);
        pods.filter(|(_, held)| !held.is_static).map(|(uid, _)| Arc::clone(uid)).collect()
    }

    /// Takes back what those have of a node that were heard of before and are not among the Pods that
    /// are there, and takes in what these ask for by now.
    pub(crate) fn correct(&self, node: &str, before: &[Arc<str>], there: &[Pod]) {
        let running: HashMap<&str, &Pod> =
            there.iter().filter(|pod| !has_ended(pod)).map(|pod| (uid_of(pod), pod)).collect();
        let mut ledger = self.ledger();
        for uid in before {
            match (running.get(&**uid), ledger.held(node, uid)) {
                (Some(pod), Some(held)) => {
                    let address = held.address;
                    ledger.insert(node, uid, Held::of(pod, address));
                }
                (None, Some(_)) => ledger.remove(uid),
                (_, None) => {}
            }
        }
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

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn address_of(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref().filter(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::LazyLock;

    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use serde_json::json;

    use super::*;
    use crate::standing::Limits;

    fn pod(uid: &str, address: Option<&str>) -> Pod {
        let pod = json!({"metadata": {"uid": uid}, "status": {"podIP": address}});
        serde_json::from_value(pod).unwrap()
    }

    /// The room on a node for so many Pods.
    fn room(index: u32, capacity: u32) -> Room<'static> {
        static STANDING: LazyLock<Standing> = LazyLock::new(Standing::default);
        let node = ["node-0", "node-1", "node-2"][index as usize];
        Room { node, block: Block::of_node(index, capacity), capacity, standing: &STANDING }
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
        addresses.observe(&pod("old", Some("10.244.0.1")), "node-0");
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
        addresses.observe(&pod("c", Some("10.244.1.9")), "node-1");
        for uid in ["a", "b", "c", "c", "unknown"] {
            addresses.release(uid);
        }
        let ledger = addresses.ledger();
        let is_empty = |here: &Occupied| here.pods.is_empty() && here.asked.is_empty();
        assert!(ledger.places.is_empty() && ledger.nodes.values().all(is_empty));
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
        addresses.observe(&pod("old", Some("172.18.0.2")), "node-0"); // in the node's own network
        reserve(0, "a").unwrap();
        addresses.observe(&pod("a", Some("10.244.0.1")), "node-0"); // it counts once
        reserve(1, "elsewhere").unwrap();
        reserve(0, "b").unwrap();
        let full = reserve(0, "c").unwrap_err();
        assert_eq!(full, Rejection::OutOfPods { used: 3, capacity: 3 });
        assert!(reserve(0, "b").is_ok(), "it has its place already");
    }

    fn asking(uid: &str, cpu: &str) -> Pod {
        let resources = json!({"requests": {"cpu": cpu, "memory": "1Mi", "example.com/a": "1"}});
        let containers = json!([{"name": "c", "resources": resources}]);
        let metadata = json!({"uid": uid, "generation": 1});
        let pod = json!({"metadata": metadata, "spec": {"containers": containers}});
        serde_json::from_value(pod).unwrap()
    }

    fn standing(amounts: &[(&str, &str)]) -> Standing {
        let amount =
            |(name, amount): &(&str, &str)| ((*name).to_owned(), Quantity((*amount).to_owned()));
        let amounts: BTreeMap<_, _> = amounts.iter().map(amount).collect();
        Standing::with(Limits::of(&amounts))
    }

    #[test]
    fn a_node_refuses_what_it_has_not_beside_others() {
        let standing = standing(&[("cpu", "2"), ("memory", "1Gi")]);
        let room = Room { standing: &standing, ..room(0, 110) };
        let addresses = Addresses::default();
        let reserve = |uid: &str, cpu: &str| addresses.reserve(&asking(uid, cpu), room);
        reserve("a", "1500m").unwrap();
        let refused = reserve("b", "1").unwrap_err();
        assert_eq!(refused.reason(), "OutOfcpu");
        let message = "Node didn't have enough resource: cpu, requested: 1000, used: 1500, \
                       capacity: 2000";
        assert_eq!(refused.to_string(), message);
        reserve("c", "500m").unwrap();
        reserve("c", "5").unwrap(); // it was taken
        addresses.release("a");
        reserve("b", "1").unwrap();
        // Those that the system needs are not asked.
        let mut critical = asking("d", "64");
        critical.spec.as_mut().unwrap().priority = Some(2_000_000_000);
        addresses.reserve(&critical, room).unwrap();
    }

    #[test]
    fn what_a_node_names_is_counted_and_what_it_does_not_name_is_not() {
        let addresses = Addresses::default();
        let reserve = |uid: &str, amounts: &[(&str, &str)]| {
            let standing = standing(amounts);
            addresses.reserve(&asking(uid, "1"), Room { standing: &standing, ..room(0, 110) })
        };
        let common = [("cpu", "8"), ("memory", "1Gi")];
        reserve("a", &common).unwrap();
        let none = [common[0], common[1], ("example.com/a", "0")];
        let refused = reserve("b", &none).unwrap_err();
        assert_eq!(refused.reason(), "OutOfexample.com/a");
        let refused = reserve("b", &common[..1]).unwrap_err();
        assert_eq!(refused.reason(), "OutOfmemory");
    }

    #[test]
    fn what_is_over_without_having_been_heard_of_is_given_back() {
        let standing = standing(&[("cpu", "4"), ("memory", "1Gi")]);
        let room = Room { standing: &standing, ..room(0, 110) };
        let addresses = Addresses::default();
        let mut file = asking("static", "1");
        file.metadata.annotations =
            Some([("kubernetes.io/config.source".to_owned(), "file".to_owned())].into());
        addresses.reserve(&file, room).unwrap();
        for uid in ["gone", "ended", "smaller"] {
            addresses.reserve(&asking(uid, "1"), room).unwrap();
        }
        addresses.reserve(&asking("new", "1"), room).unwrap_err();
        let before = addresses.heard_of("node-0");
        assert_eq!(before.len(), 3);
        let mut ended = asking("ended", "1");
        ended.status.get_or_insert_default().phase = Some("Failed".into());
        addresses.correct("node-0", &before, &[ended, asking("smaller", "500m")]);
        let asked = addresses.ledger().nodes["node-0"].asked.milli_cpu();
        assert_eq!(asked, 1500);
        addresses.reserve(&asking("new", "1"), room).unwrap();
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
        addresses.observe(&pod("old", Some("10.244.1.1")), "node-1");
        assert_eq!(reserve(1, "a"), Err(Rejection::NodePorts), "it is in use");
        assert!(reserve(0, "a").is_ok());
        assert_eq!(reserve(0, "b"), Err(Rejection::NodePorts), "it was given a moment ago");
        assert!(reserve(0, "a").is_ok(), "it has its port already");
        assert!(reserve(2, "c").is_ok(), "another node has ports of its own");
    }
}
