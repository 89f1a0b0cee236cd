//! Addresses of nodes and Pods: a block per node, one address per Pod.
//!
//! Which addresses are taken is read from the Pods themselves; only those given out a moment
//! ago, which the cache does not show yet, are remembered.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;

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

/// A node runs as many Pods as it can. Said as a kubelet says it.
#[derive(Debug, thiserror::Error)]
#[error("Node didn't have enough resource: pods, requested: 1, used: {used}, capacity: {capacity}")]
pub(crate) struct OutOfPods {
    /// How many Pods it runs.
    pub(crate) used: usize,
    /// How many it can run.
    pub(crate) capacity: u32,
}

/// Gives out Pod addresses.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// By the Pod's uid: given out, but possibly not yet in the Pod's status.
    reserved: Mutex<HashMap<String, Ipv4Addr>>,
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
    ) -> Result<String, OutOfPods> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if let Some(address) = reserved.get(&uid) {
            return Ok(address.to_string());
        }
        let started = running.iter().filter(|pod| address_of(pod).is_some());
        let unsettled = started.clone().filter_map(|pod| pod.metadata.uid.as_ref());
        let unsettled = unsettled.filter(|uid| reserved.contains_key(*uid)).count();
        let held: HashSet<Ipv4Addr> =
            reserved.values().copied().filter(|address| block.contains(*address)).collect();
        let used = started.clone().count() + held.len() - unsettled;
        let taken: HashSet<&str> = started.filter_map(|pod| address_of(pod)).collect();
        let free = |address: &Ipv4Addr| {
            !held.contains(address) && !taken.contains(address.to_string().as_str())
        };
        let room = u32::try_from(used).is_ok_and(|used| used < capacity);
        let address = block.hosts().find(free).filter(|_| room);
        let address = address.ok_or(OutOfPods { used, capacity })?;
        reserved.insert(uid, address);
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
        assert_eq!((full.used, full.capacity), (3, 3));
        assert!(reserve(0, "b", &running).is_ok(), "it has its place already");
    }
}
