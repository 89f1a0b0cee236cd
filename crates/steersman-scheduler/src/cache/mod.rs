//! What the scheduler knows of nodes and the Pods on them.
//!
//! A Pod is assumed to be on a node from the decision until the informer shows its binding, since
//! others are decided upon in between. Which nodes have changed is noted, so that the snapshot of the
//! next decision takes over only those.

mod node_tree;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;

use crate::framework::{NodeInfo, PodInfo, Snapshot};
use node_tree::{NodeTree, Zone};

/// Nodes and the Pods on them.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By name; also of nodes that are not known yet, if Pods are said to be there.
    nodes: HashMap<Arc<str>, Entry>,
    /// By uid: every Pod that takes something from a node.
    pods: HashMap<Arc<str>, Placed>,
    tree: NodeTree,
    /// Nodes that are not in the snapshot as they are.
    changed: HashSet<Arc<str>>,
    /// Nodes came or went, so that the snapshot has to be made anew.
    is_reordered: bool,
}

#[derive(Debug)]
struct Entry {
    info: Arc<NodeInfo>,
    /// Whether there is such a node, or only Pods that say so.
    is_known: bool,
}

/// A Pod that takes something from a node.
#[derive(Debug)]
struct Placed {
    node: Arc<str>,
    info: Arc<PodInfo>,
    /// Decided upon, but not yet seen bound.
    is_assumed: bool,
}

impl Cache {
    /// How many nodes there are, how many Pods on them, and how many of those are only assumed.
    pub(crate) fn sizes(&self) -> [usize; 3] {
        let nodes = self.nodes.values().filter(|entry| entry.is_known).count();
        let assumed = self.pods.values().filter(|placed| placed.is_assumed).count();
        [nodes, self.pods.len(), assumed]
    }

    /// Takes in a node that is new or has changed. What it was before.
    pub(crate) fn set_node(&mut self, node: Arc<Node>) -> Option<Arc<Node>> {
        let name: Arc<str> = node.metadata.name.as_deref().unwrap_or_default().into();
        let zone = Zone::of(&node);
        let entry = self.entry(&name);
        let old = entry.is_known.then(|| Arc::clone(&entry.info.node));
        entry.is_known = true;
        Arc::make_mut(&mut entry.info).set_node(node);
        self.changed.insert(Arc::clone(&name));
        let old_zone = old.as_deref().map(Zone::of);
        if old_zone.as_ref() != Some(&zone) {
            if let Some(old_zone) = old_zone {
                self.tree.remove(&old_zone, &name);
            }
            self.tree.add(zone, name);
            self.is_reordered = true;
        }
        old
    }

    /// Forgets a node. What it was.
    pub(crate) fn remove_node(&mut self, name: &str) -> Option<Arc<Node>> {
        let entry = self.nodes.get_mut(name).filter(|entry| entry.is_known)?;
        let node = Arc::clone(&entry.info.node);
        entry.is_known = false;
        if entry.info.pods.is_empty() {
            self.nodes.remove(name);
        }
        self.tree.remove(&Zone::of(&node), name);
        self.is_reordered = true;
        Some(node)
    }

    /// The node of this name, if it is known.
    pub(crate) fn node(&self, name: &str) -> Option<&Arc<NodeInfo>> {
        self.nodes.get(name).filter(|entry| entry.is_known).map(|entry| &entry.info)
    }

    /// Counts a Pod on a node from now on, although it is not bound yet.
    pub(crate) fn assume(&mut self, info: Arc<PodInfo>, node: &Arc<str>) {
        self.place(Placed { node: Arc::clone(node), info, is_assumed: true });
    }

    /// Takes back an assumption: the Pod could not be bound. Whether there was one.
    pub(crate) fn forget(&mut self, uid: &str) -> bool {
        self.is_assumed(uid) && self.remove_pod(uid).is_some()
    }

    /// Whether a Pod has been decided upon, and is not yet seen bound.
    pub(crate) fn is_assumed(&self, uid: &str) -> bool {
        self.pods.get(uid).is_some_and(|placed| placed.is_assumed)
    }

    /// Whether a Pod is known to take something from a node.
    pub(crate) fn has_pod(&self, uid: &str) -> bool {
        self.pods.contains_key(uid)
    }

    /// Takes in a Pod that is bound. What was known of it, if it was known to be bound; nothing is done
    /// if nothing has changed.
    pub(crate) fn set_pod(&mut self, info: &Arc<PodInfo>, node: &str) -> Option<Arc<PodInfo>> {
        if let Some(placed) = self.pods.get_mut(&info.uid)
            && &*placed.node == node
            && placed.info == *info
        {
            let was_assumed = std::mem::replace(&mut placed.is_assumed, false);
            return (!was_assumed).then(|| Arc::clone(&placed.info));
        }
        let old = self.pods.get(&info.uid).filter(|placed| !placed.is_assumed);
        let old = old.map(|placed| Arc::clone(&placed.info));
        self.place(Placed { node: node.into(), info: Arc::clone(info), is_assumed: false });
        old
    }

    /// Counts a Pod no more. What was known of it.
    pub(crate) fn remove_pod(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        let Placed { node, info, .. } = self.pods.remove(uid)?;
        let entry = self.nodes.get_mut(&node)?;
        Arc::make_mut(&mut entry.info).remove_pod(uid);
        if entry.info.pods.is_empty() && !entry.is_known {
            self.nodes.remove(&node);
        }
        self.changed.insert(node);
        Some(info)
    }

    /// Brings a snapshot up to date: what has not changed since the last time is left as it is.
    pub(crate) fn update(&mut self, snapshot: &mut Snapshot) {
        if std::mem::take(&mut self.is_reordered) {
            let names = self.tree.list();
            let known = names.iter().filter_map(|name| self.node(name)).cloned();
            *snapshot = Snapshot::of(known);
            self.changed.clear();
            return;
        }
        for name in std::mem::take(&mut self.changed) {
            if let Some(node) = self.node(&name) {
                snapshot.replace(node);
            }
        }
    }

    fn place(&mut self, placed: Placed) {
        self.remove_pod(&placed.info.uid);
        let entry = self.entry(&placed.node);
        Arc::make_mut(&mut entry.info).add_pod(Arc::clone(&placed.info));
        self.changed.insert(Arc::clone(&placed.node));
        self.pods.insert(Arc::clone(&placed.info.uid), placed);
    }

    fn entry(&mut self, name: &Arc<str>) -> &mut Entry {
        self.nodes.entry(Arc::clone(name)).or_insert_with(|| {
            let mut unknown = Node::default();
            unknown.metadata.name = Some(name.to_string());
            Entry { info: Arc::new(NodeInfo::new(Arc::new(unknown))), is_known: false }
        })
    }
}
