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

/// Every address of a node's block is taken.
#[derive(Debug, thiserror::Error)]
#[error("every address of {block} is taken")]
pub(crate) struct Exhausted {
    block: String,
}

/// Gives out Pod addresses.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// By the Pod's uid: given out, but possibly not yet in the Pod's status.
    reserved: Mutex<HashMap<String, Ipv4Addr>>,
}

impl Addresses {
    /// An address for a Pod that has none yet: the lowest that none of the node's Pods has.
    pub(crate) fn reserve(
        &self,
        pod: &Pod,
        block: Block,
        on_node: &[Arc<Pod>],
    ) -> Result<String, Exhausted> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if let Some(address) = reserved.get(&uid) {
            return Ok(address.to_string());
        }
        let taken: HashSet<&str> = on_node.iter().filter_map(|pod| address_of(pod)).collect();
        let held: HashSet<Ipv4Addr> = reserved.values().copied().collect();
        let free = |address: &Ipv4Addr| {
            !held.contains(address) && !taken.contains(address.to_string().as_str())
        };
        let address = block.hosts().find(free).ok_or_else(|| Exhausted { block: block.cidr() })?;
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
        let of = |uid| addresses.reserve(&pod(uid, None), block, &on_node).unwrap();
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
            addresses.reserve(&pod(&n.to_string(), None), block, &[]).unwrap();
        }
        assert!(addresses.reserve(&pod("one more", None), block, &[]).is_err());
    }
}
