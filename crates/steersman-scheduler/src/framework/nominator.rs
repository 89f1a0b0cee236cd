//! Pods for which room is being made on a node, and which therefore count there.

use std::sync::Arc;

use imbl::HashMap;

use super::pod_info::PodInfo;

/// Which Pods are to go to which node once there is room. Decisions look at a copy while it changes,
/// so that copies share what is the same.
#[derive(Clone, Debug, Default)]
pub struct Nominator {
    by_node: HashMap<Arc<str>, Vec<Arc<PodInfo>>>,
    /// By uid of the Pod.
    nodes: HashMap<Arc<str>, Arc<str>>,
}

impl Nominator {
    /// Counts a Pod on a node, and on no other.
    pub fn nominate(&mut self, pod: Arc<PodInfo>, node: &Arc<str>) {
        self.remove(&pod.uid);
        self.nodes.insert(Arc::clone(&pod.uid), Arc::clone(node));
        self.by_node.entry(Arc::clone(node)).or_default().push(pod);
    }

    /// Counts a Pod nowhere.
    pub fn remove(&mut self, uid: &str) {
        let Some(node) = self.nodes.remove(uid) else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.retain(|pod| &*pod.uid != uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }

    /// The node that a Pod is to go to.
    pub fn node_of(&self, uid: &str) -> Option<&Arc<str>> {
        self.nodes.get(uid)
    }

    /// The Pods that are to go to a node.
    pub fn on(&self, node: &str) -> &[Arc<PodInfo>] {
        match self.nodes.is_empty() {
            true => &[],
            false => self.by_node.get(node).map_or(&[], Vec::as_slice),
        }
    }
}
