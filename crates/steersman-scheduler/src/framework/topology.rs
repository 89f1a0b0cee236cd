//! Which domain each node is in: what nodes have as the value of one label.
//!
//! Thousands of nodes are in few domains, and nodes change their labels seldom. So the domains of a
//! label are worked out once, and then counting is arithmetic.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::node_info::NodeInfo;

/// The domains of one label.
#[derive(Debug, Default)]
pub struct Topology {
    /// The values of the label.
    values: Vec<String>,
    /// The domain of each node, by its place; none if it lacks the label.
    domains: Vec<Option<usize>>,
}

impl Topology {
    fn of(nodes: &[Arc<NodeInfo>], key: &str) -> Self {
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut values = Vec::new();
        let domains = nodes.iter().map(|node| {
            let value = node.labels().get(key)?;
            Some(*known.entry(value).or_insert_with(|| {
                values.push(value.clone());
                values.len() - 1
            }))
        });
        let domains = domains.collect();
        Self { values, domains }
    }

    /// The domain of the node at a place.
    pub fn domain(&self, place: usize) -> Option<usize> {
        self.domains.get(place).copied().flatten()
    }

    /// How many domains there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no node has the label.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value that the nodes of a domain have.
    pub fn value(&self, domain: usize) -> &str {
        &self.values[domain]
    }
}

/// The topologies that somebody has asked for. They follow from the nodes, so they make no difference
/// between two snapshots.
#[derive(Debug, Default)]
pub(super) struct Topologies(Mutex<HashMap<String, Arc<Topology>>>);

impl Topologies {
    /// That of a label, which is worked out if nobody has asked for it yet.
    pub(super) fn get(&self, nodes: &[Arc<NodeInfo>], key: &str) -> Arc<Topology> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(topology) = known.get(key) {
            return Arc::clone(topology);
        }
        let topology = Arc::new(Topology::of(nodes, key));
        known.insert(key.to_owned(), Arc::clone(&topology));
        topology
    }

    /// Nodes have other labels.
    pub(super) fn forget(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Clone for Topologies {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl PartialEq for Topologies {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
