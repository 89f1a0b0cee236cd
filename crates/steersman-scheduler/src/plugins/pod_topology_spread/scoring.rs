//! The fewer Pods a node's domains have, the better.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::constraints::{Constraint, topologies};
use super::{HOSTNAME, has_keys};
use crate::framework::{Cycle, NodeInfo, SCORE_MAX, Topology};

/// What scores are made of.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    constraints: Vec<Weighed>,
    /// Nodes that cannot be told apart by every constraint, and are the worst.
    ignored: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Weighed {
    constraint: Constraint,
    /// By the value of the label that tells domains apart, or by the name of the node if every node
    /// is one.
    pods: HashMap<String, i64>,
    /// The more domains there are, the more one Pod in one of them counts.
    weight: f64,
}

impl Scores {
    /// Counts the Pods of all nodes in the domains of those that can run the Pod.
    pub(super) fn of(
        constraints: &[Constraint],
        needs_all_keys: bool,
        cycle: &Cycle<'_>,
        feasible: &[Arc<NodeInfo>],
    ) -> Self {
        let lacks_keys = |node: &NodeInfo| needs_all_keys && !has_keys(constraints, node.labels());
        let ignored = feasible.iter().filter(|node| lacks_keys(node));
        let ignored: BTreeSet<String> = ignored.map(|node| node.name().to_owned()).collect();
        let counted: Vec<_> =
            feasible.iter().filter(|node| !ignored.contains(node.name())).collect();
        let needed = if needs_all_keys { constraints } else { &[] };
        let labels = topologies(needed, cycle.snapshot);
        let constraints =
            constraints.iter().map(|it| Weighed::of(it, cycle, &counted, &labels)).collect();
        Self { constraints, ignored }
    }

    /// How many Pods a node's domains have, weighed; less is better.
    pub(super) fn score(&self, node: &NodeInfo) -> i64 {
        if self.ignored.contains(node.name()) {
            return 0;
        }
        let mut score = 0.0;
        for Weighed { constraint, pods, weight } in &self.constraints {
            let Some(value) = node.labels().get(&constraint.topology_key) else { continue };
            let domain = if constraint.topology_key == HOSTNAME { node.name() } else { value };
            let count = pods.get(domain).copied().unwrap_or_default();
            score += count as f64 * weight + f64::from(constraint.max_skew - 1);
        }
        score.round() as i64
    }

    /// Turns scores around, so that more is better.
    pub(super) fn normalize(&self, nodes: &[Arc<NodeInfo>], scores: &mut [i64]) {
        let is_ignored = |place: usize| self.ignored.contains(nodes[place].name());
        let counted = scores.iter().enumerate().filter(|(place, _)| !is_ignored(*place));
        let counted: Vec<i64> = counted.map(|(_, score)| *score).collect();
        let min = counted.iter().copied().min().unwrap_or(i64::MAX);
        let max = counted.iter().copied().max().unwrap_or_default().max(0);
        for (place, score) in scores.iter_mut().enumerate() {
            *score = match max {
                _ if is_ignored(place) => 0,
                0 => SCORE_MAX,
                _ => SCORE_MAX * (max + min - *score) / max,
            };
        }
    }
}

impl Weighed {
    /// Counts the Pods on nodes that have these labels.
    fn of(
        constraint: &Constraint,
        cycle: &Cycle<'_>,
        feasible: &[&Arc<NodeInfo>],
        labels: &[Arc<Topology>],
    ) -> Self {
        let mut pods: HashMap<String, i64> = HashMap::new();
        let found = constraint.pods(cycle.info.namespace(), cycle.snapshot);
        if constraint.topology_key == HOSTNAME {
            for (node, count) in found.flat_map(|kin| cycle.snapshot.nodes_of(kin)) {
                *pods.entry(node.name().to_owned()).or_default() += count;
            }
            let weight = (feasible.len() as f64 + 2.0).ln();
            return Self { constraint: constraint.clone(), pods, weight };
        }
        for node in feasible {
            let value = node.labels().get(&constraint.topology_key);
            if value.is_none_or(|value| !pods.contains_key(value)) {
                pods.insert(value.cloned().unwrap_or_default(), 0);
            }
        }
        let topology = cycle.snapshot.topology(&constraint.topology_key);
        for kin in found {
            for (domain, count) in kin.domains(&topology, constraint.counted(labels, cycle)) {
                if let Some(sum) = pods.get_mut(topology.value(domain)) {
                    *sum += count;
                }
            }
        }
        let weight = (pods.len() as f64 + 2.0).ln();
        Self { constraint: constraint.clone(), pods, weight }
    }
}
