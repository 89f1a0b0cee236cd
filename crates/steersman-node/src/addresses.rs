//! Addresses of nodes and Pods: a block per node, one address per Pod, and each port of a node for
//! one Pod.
//!
//! What is taken is read from the Pods themselves; only what was given out a moment ago, which
//! the cache does not show yet, is remembered.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use steersman_scheduler::HostPort;

/// Where the blocks of Pod addresses begin.
const PODS: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 0);
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
        let first = u32::from(PODS).wrapping_add(index.wrapping_mul(size));
        Self { first, bits: size.trailing_zeros() }
    }

    /// In the notation of `spec.podCIDR`.
    pub(crate) fn cidr(self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.first), 32 - self.bits)
    }

    /// Whether an address is in this block.
    fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) >> self.bits == self.first >> self.bits
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
    /// Another Pod has a port that it asks for.
    #[error(
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    )]
    NodePorts,
}

impl Rejection {
    /// The reason in the Pod's status.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::OutOfPods { .. } => "OutOfpods",
            Self::NodePorts => "NodePorts",
        }
    }
}

/// Gives out Pod addresses.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// By the Pod's uid: given out, but possibly not yet in the Pod's status.
    reserved: Mutex<HashMap<String, Reserved>>,
}

#[derive(Debug)]
struct Reserved {
    address: Ipv4Addr,
    ports: Vec<HostPort>,
}

impl Addresses {
    /// An address for a Pod that has none yet: the lowest that none of the Pods has that run on
    /// the node, which are at most `capacity`.
    pub(crate) fn reserve(
        &self,
        pod: &Pod,
        block: Block,
        capacity: u32,
        running: &[Arc<Pod>],
    ) -> Result<String, Rejection> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if let Some(reserved) = reserved.get(&uid) {
            return Ok(reserved.address.to_string());
        }
        let started = running.iter().filter(|pod| address_of(pod).is_some());
        let unsettled = started.clone().filter_map(|pod| pod.metadata.uid.as_ref());
        let unsettled = unsettled.filter(|uid| reserved.contains_key(*uid)).count();
        let here = reserved.values().filter(|reserved| block.contains(reserved.address));
        let held: HashSet<Ipv4Addr> = here.clone().map(|reserved| reserved.address).collect();
        let ports = HostPort::all_of(pod);
        let mut used_ports = here.flat_map(|reserved| reserved.ports.clone());
        let mut others = started.clone().flat_map(|pod| HostPort::all_of(pod));
        let conflicts = |used: HostPort| ports.iter().any(|port| port.conflicts(&used));
        let no_port = used_ports.any(conflicts) || others.any(conflicts);
        let used = started.clone().count() + held.len() - unsettled;
        let taken: HashSet<&str> = started.filter_map(|pod| address_of(pod)).collect();
        let free = |address: &Ipv4Addr| {
            !held.contains(address) && !taken.contains(address.to_string().as_str())
        };
        let room = u32::try_from(used).is_ok_and(|used| used < capacity);
        let address = block.hosts().find(free).filter(|_| room);
        let address = address.ok_or(Rejection::OutOfPods { used, capacity })?;
        if no_port {
            return Err(Rejection::NodePorts);
        }
        reserved.insert(uid, Reserved { address, ports });
        Ok(address.to_string())
    }

    /// Ends the reservation of a Pod whose status shows its address, or which is gone.
    pub(crate) fn settle(&self, uid: &str) {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

fn address_of(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref().filter(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, address: Option<&str>) -> Arc<Pod> {
        let pod = json!({"metadata": {"uid": uid}, "status": {"podIP": address}});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn blocks_follow_each_other_and_are_large_enough() {
        assert_eq!(Block::of_node(0, 110).cidr(), "10.244.0.0/24");
        assert_eq!(Block::of_node(3, 110).cidr(), "10.244.3.0/24");
        assert_eq!(Block::of_node(256, 110).cidr(), "10.245.0.0/24");
        assert_eq!(Block::of_node(1, 500).cidr(), "10.244.2.0/23");
    }

    #[test]
    fn pods_get_the_lowest_free_address_and_keep_it_until_they_are_gone() {
        let addresses = Addresses::default();
        let block = Block::of_node(0, 110);
        let on_node = [pod("old", Some("10.244.0.1"))];
        let of = |uid| addresses.reserve(&pod(uid, None), block, 110, &on_node).unwrap();
        assert_eq!(of("a"), "10.244.0.2");
        assert_eq!(of("a"), "10.244.0.2");
        assert_eq!(of("b"), "10.244.0.3");
        addresses.settle("a"); // its Pod is gone
        assert_eq!(of("c"), "10.244.0.2");
    }

    #[test]
    fn a_full_block_is_an_error() {
        let addresses = Addresses::default();
        let block = Block::of_node(0, 1);
        for n in 0..254 {
            addresses.reserve(&pod(&n.to_string(), None), block, 1000, &[]).unwrap();
        }
        assert!(addresses.reserve(&pod("one more", None), block, 1000, &[]).is_err());
    }

    #[test]
    fn a_node_runs_no_more_pods_than_it_can() {
        let addresses = Addresses::default();
        let reserve = |node, uid, running: &[_]| {
            addresses.reserve(&pod(uid, None), Block::of_node(node, 3), 3, running)
        };
        let mut running = vec![pod("old", Some("172.18.0.2"))]; // in the node's own network
        reserve(0, "a", &running).unwrap();
        running.push(pod("a", Some("10.244.0.1"))); // seen, its reservation not settled yet
        reserve(1, "elsewhere", &[]).unwrap();
        reserve(0, "b", &running).unwrap();
        let full = reserve(0, "c", &running).unwrap_err();
        assert_eq!(full, Rejection::OutOfPods { used: 3, capacity: 3 });
        assert!(reserve(0, "b", &running).is_ok(), "it has its place already");
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
            Arc::new(serde_json::from_value::<Pod>(pod).unwrap())
        };
        let reserve = |node, uid, running: &[_]| {
            addresses.reserve(&pod(uid, None), Block::of_node(node, 110), 110, running)
        };
        let running = [pod("old", Some("10.244.1.1"))];
        assert_eq!(reserve(1, "a", &running), Err(Rejection::NodePorts), "it is in use");
        assert!(reserve(0, "a", &[]).is_ok());
        assert_eq!(reserve(0, "b", &[]), Err(Rejection::NodePorts), "it was given a moment ago");
        assert!(reserve(0, "a", &[]).is_ok(), "it has its port already");
        assert!(reserve(2, "c", &[]).is_ok(), "another node has ports of its own");
    }
}
