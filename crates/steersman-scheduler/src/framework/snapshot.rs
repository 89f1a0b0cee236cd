//! The nodes as one decision sees them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::cycle::Cycle;
use super::kin::{Kin, Kinships};
use super::node_info::NodeInfo;
use super::pod_info::PodInfo;
use super::selector::Selector;
use super::topology::{Topologies, Topology};
use super::verdicts::{Remembered, Verdicts};

/// All nodes, in the order in which they are tried. What changed since the decision before is taken
/// over by whoever keeps them; the rest is shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    nodes: Vec<Arc<NodeInfo>>,
    places: HashMap<Arc<str>, usize>,
    /// Places of nodes whose Pods want to be near to or far from others.
    with_affinity: BTreeSet<usize>,
    /// Places of nodes whose Pods must not be near to others.
    with_required_anti_affinity: BTreeSet<usize>,
    /// On how many nodes each image is.
    image_nodes: HashMap<String, usize>,
    /// When the last of the nodes was created.
    newest: Option<Time>,
    kin: Kinships,
    topologies: Topologies,
    verdicts: Verdicts,
}

impl Snapshot {
    /// These nodes.
    pub fn of(nodes: impl IntoIterator<Item = Arc<NodeInfo>>) -> Self {
        let mut snapshot = Self::default();
        for node in nodes {
            let place = snapshot.nodes.len();
            snapshot.places.insert(node.name().into(), place);
            snapshot.count_images(&node, 1);
            snapshot.file(place, &node);
            snapshot.note_creation(&node);
            node.kin.iter().for_each(|(one, count)| snapshot.kin.add(place, one, *count));
            snapshot.nodes.push(node);
        }
        snapshot
    }

    /// Takes over what changed of a node that is there already.
    pub fn replace(&mut self, node: &Arc<NodeInfo>) {
        let Some(&place) = self.places.get(node.name()) else { return };
        let old = std::mem::replace(&mut self.nodes[place], Arc::clone(node));
        if !Arc::ptr_eq(&old.images, &node.images) {
            self.count_images(&old, -1);
            self.count_images(node, 1);
        }
        self.file(place, node);
        if !Arc::ptr_eq(&old.node, &node.node) {
            self.note_creation(node);
        }
        self.verdicts.forget(place);
        if !Arc::ptr_eq(&old.node, &node.node) && old.labels() != node.labels() {
            self.topologies.forget();
        }
        // Mostly one Pod has come or gone.
        let differs = |(one, count): &&(Arc<PodInfo>, u32), others: &[(Arc<PodInfo>, u32)]| {
            !others.iter().any(|(other, n)| n == count && Arc::ptr_eq(one, other))
        };
        for (one, count) in old.kin.iter().filter(|it| differs(it, &node.kin)) {
            self.kin.remove(place, one, *count);
        }
        for (one, count) in node.kin.iter().filter(|it| differs(it, &old.kin)) {
            self.kin.add(place, one, *count);
        }
    }

    /// The Pods on all nodes, those together that are kin.
    pub fn kin(&self) -> impl Iterator<Item = &Kin> {
        self.kin.all()
    }

    /// Those of them whose labels are selected.
    pub fn kin_selected(&self, selector: &Selector) -> Vec<&Kin> {
        self.kin.selected(selector)
    }

    /// The nodes on which Pods that are kin are, and how many.
    pub fn nodes_of<'a>(&'a self, kin: &'a Kin) -> impl Iterator<Item = (&'a Arc<NodeInfo>, i64)> {
        kin.places().map(|(place, count)| (&self.nodes[place], count))
    }

    /// Which domain each node is in by a label.
    pub fn topology(&self, key: &str) -> Arc<Topology> {
        self.topologies.get(&self.nodes, key)
    }

    /// What was found out about nodes for Pods like this one.
    pub(super) fn remembered(&self, cycle: &Cycle<'_>) -> Remembered<'_> {
        self.verdicts.of(cycle)
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Arc<NodeInfo>] {
        &self.nodes
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<NodeInfo>> {
        self.places.get(name).map(|place| &self.nodes[*place])
    }

    /// Where among the nodes the one of this name is.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The nodes whose Pods want to be near to or far from others.
    pub fn with_affinity(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.with_affinity.iter().map(|place| &self.nodes[*place])
    }

    /// The nodes whose Pods must not be near to others.
    pub fn with_required_anti_affinity(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.with_required_anti_affinity.iter().map(|place| &self.nodes[*place])
    }

    /// On how many nodes an image is.
    pub fn nodes_with_image(&self, image: &str) -> usize {
        self.image_nodes.get(image).copied().unwrap_or_default()
    }

    /// Whether any node says which images it has.
    pub fn knows_images(&self) -> bool {
        !self.image_nodes.is_empty()
    }

    /// When the last of the nodes was created, if any says so.
    pub(crate) fn newest(&self) -> Option<&Time> {
        self.newest.as_ref()
    }

    fn note_creation(&mut self, node: &NodeInfo) {
        let created = node.node.metadata.creation_timestamp.as_ref();
        if created.map(|it| it.0) > self.newest.as_ref().map(|it| it.0) {
            self.newest = created.cloned();
        }
    }

    fn file(&mut self, place: usize, node: &NodeInfo) {
        set(&mut self.with_affinity, place, !node.with_affinity.is_empty());
        let has_anti = !node.with_required_anti_affinity.is_empty();
        set(&mut self.with_required_anti_affinity, place, has_anti);
    }

    fn count_images(&mut self, node: &NodeInfo, by: isize) {
        for image in node.images.keys() {
            let count = self.image_nodes.entry(image.clone()).or_default();
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                self.image_nodes.remove(image);
            }
        }
    }
}

fn set(places: &mut BTreeSet<usize>, place: usize, is_in: bool) {
    match is_in {
        true => places.insert(place),
        false => places.remove(&place),
    };
}
