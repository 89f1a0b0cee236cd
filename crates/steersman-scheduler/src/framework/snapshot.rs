//! The nodes as one decision sees them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::node_info::NodeInfo;
use super::pod_info::PodInfo;
use super::topology::{Topologies, Topology};

/// Pods that are [kin](PodInfo::is_kin_of): what is true of one for a decision about another Pod is
/// true of all. So it is asked once, however many there are.
#[derive(Clone, Debug)]
pub struct Kin {
    /// One of them.
    pub like: Arc<PodInfo>,
    /// How many of them are on each node, by its place.
    counts: HashMap<usize, u32>,
}

impl Kin {
    /// The domains in which they are, on nodes whose places are wanted, and how many.
    pub fn domains(
        &self,
        topology: &Topology,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Vec<(usize, i64)> {
        let mut sums = vec![0; topology.len()];
        for (place, count) in &self.counts {
            if let Some(domain) = topology.domain(*place).filter(|_| is_wanted(*place)) {
                sums[domain] += i64::from(*count);
            }
        }
        sums.into_iter().enumerate().filter(|(_, sum)| *sum != 0).collect()
    }
}

impl PartialEq for Kin {
    fn eq(&self, other: &Self) -> bool {
        self.like.is_kin_of(&other.like) && self.counts == other.counts
    }
}

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
    /// The Pods, those together that are kin, by their kinship.
    kin: HashMap<u64, Vec<Kin>>,
    topologies: Topologies,
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
            node.kin.iter().for_each(|(one, count)| snapshot.add_kin(place, one, *count));
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
        if !Arc::ptr_eq(&old.node, &node.node) && old.labels() != node.labels() {
            self.topologies.forget();
        }
        // Mostly one Pod has come or gone.
        let differs = |(one, count): &&(Arc<PodInfo>, u32), others: &[(Arc<PodInfo>, u32)]| {
            !others.iter().any(|(other, n)| n == count && Arc::ptr_eq(one, other))
        };
        for (one, count) in old.kin.iter().filter(|it| differs(it, &node.kin)) {
            self.remove_kin(place, one, *count);
        }
        for (one, count) in node.kin.iter().filter(|it| differs(it, &old.kin)) {
            self.add_kin(place, one, *count);
        }
    }

    /// The Pods on all nodes, those together that are kin.
    pub fn kin(&self) -> impl Iterator<Item = &Kin> {
        self.kin.values().flatten()
    }

    /// The nodes on which Pods that are kin are, and how many.
    pub fn nodes_of<'a>(&'a self, kin: &'a Kin) -> impl Iterator<Item = (&'a Arc<NodeInfo>, i64)> {
        kin.counts.iter().map(|(place, count)| (&self.nodes[*place], i64::from(*count)))
    }

    /// Which domain each node is in by a label.
    pub fn topology(&self, key: &str) -> Arc<Topology> {
        self.topologies.get(&self.nodes, key)
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

    fn file(&mut self, place: usize, node: &NodeInfo) {
        set(&mut self.with_affinity, place, !node.with_affinity.is_empty());
        let has_anti = !node.with_required_anti_affinity.is_empty();
        set(&mut self.with_required_anti_affinity, place, has_anti);
    }

    fn add_kin(&mut self, place: usize, pod: &Arc<PodInfo>, count: u32) {
        let alike = self.kin.entry(pod.kinship).or_default();
        let known = alike.iter_mut().find(|kin| kin.like.is_kin_of(pod));
        match known {
            Some(kin) => *kin.counts.entry(place).or_default() += count,
            None => {
                alike.push(Kin { like: Arc::clone(pod), counts: HashMap::from([(place, count)]) });
            }
        }
    }

    fn remove_kin(&mut self, place: usize, pod: &PodInfo, count: u32) {
        let Some(alike) = self.kin.get_mut(&pod.kinship) else { return };
        for kin in alike.iter_mut().filter(|kin| kin.like.is_kin_of(pod)) {
            let left = kin.counts.get(&place).map_or(0, |known| known.saturating_sub(count));
            match left {
                0 => kin.counts.remove(&place),
                left => kin.counts.insert(place, left),
            };
        }
        alike.retain(|kin| !kin.counts.is_empty());
        if alike.is_empty() {
            self.kin.remove(&pod.kinship);
        }
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
