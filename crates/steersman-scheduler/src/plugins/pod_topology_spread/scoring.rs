//! The fewer Pods a node's domains have, the better.

use std::sync::Arc;

use super::constraints::{Constraint, topologies};
use super::{HOSTNAME, has_keys};
use crate::framework::{Cycle, Kin, NodeInfo, SCORE_MAX, Topology};

/// How many Pods the domains of nodes have, weighed; less is better. In the order of the nodes.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    raw: Vec<i64>,
    /// Nodes that cannot be told apart by every constraint, and are the worst.
    ignored: Vec<bool>,
}

/// The nodes that can run the Pod.
struct Feasible<'a> {
    /// Their places in the snapshot.
    places: &'a [usize],
    /// Which of them do not count, in the same order.
    ignored: &'a [bool],
}

impl Feasible<'_> {
    /// The places of those that count.
    fn counted(&self) -> impl Iterator<Item = usize> {
        let all = self.places.iter().zip(self.ignored);
        all.filter(|(_, is_ignored)| !**is_ignored).map(|(place, _)| *place)
    }
}

/// How many Pods there are in the domains of one constraint.
struct Weighed {
    topology: Arc<Topology>,
    /// By domain, or by the place of the node if every node is one.
    pods: Vec<i64>,
    /// Whether every node is one.
    by_node: bool,
    /// The more domains there are, the more one Pod in one of them counts.
    weight: f64,
    max_skew: i32,
}

impl Scores {
    /// Counts the Pods of all nodes in the domains of those that can run the Pod.
    pub(super) fn of(
        constraints: &[Constraint],
        needs_all_keys: bool,
        cycle: &Cycle<'_>,
        nodes: &[Arc<NodeInfo>],
    ) -> Self {
        let lacks_keys =
            |node: &Arc<NodeInfo>| needs_all_keys && !has_keys(constraints, node.labels());
        let ignored: Vec<bool> = nodes.iter().map(lacks_keys).collect();
        let needed = if needs_all_keys { constraints } else { &[] };
        let labels = topologies(needed, cycle.snapshot);
        let places = cycle.places_of(nodes);
        let feasible = Feasible { places: &places, ignored: &ignored };
        let weighed: Vec<Weighed> =
            constraints.iter().map(|it| Weighed::of(it, cycle, &feasible, &labels)).collect();
        let score = |(place, is_ignored): (&usize, &bool)| match is_ignored {
            true => 0,
            false => {
                let parts = weighed.iter().filter_map(|it| it.score(*place));
                parts.sum::<f64>().round() as i64
            }
        };
        let raw = places.iter().zip(&ignored).map(score).collect();
        Self { raw, ignored }
    }

    /// The scores of all nodes.
    pub(super) fn raw(&self) -> &[i64] {
        &self.raw
    }

    /// Turns scores around, so that more is better.
    pub(super) fn normalize(&self, scores: &mut [i64]) {
        let counted = self.ignored.iter().zip(&*scores).filter(|(is_ignored, _)| !**is_ignored);
        let counted = counted.map(|(_, score)| *score);
        let min = counted.clone().min().unwrap_or(i64::MAX);
        let max = counted.max().unwrap_or_default().max(0);
        for (is_ignored, score) in self.ignored.iter().zip(scores) {
            *score = match max {
                _ if *is_ignored => 0,
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
        feasible: &Feasible<'_>,
        labels: &[Arc<Topology>],
    ) -> Self {
        let topology = cycle.snapshot.topology(&constraint.topology_key);
        let max_skew = constraint.max_skew;
        let found = constraint.pods(cycle.info.namespace(), cycle.snapshot);
        if constraint.topology_key == HOSTNAME {
            let mut pods = vec![0; cycle.snapshot.len()];
            found.flat_map(Kin::places).for_each(|(place, count)| pods[place] += count);
            let weight = weight(feasible.counted().count());
            return Self { topology, pods, by_node: true, weight, max_skew };
        }
        let mut is_feasible = vec![false; topology.len()];
        let mut is_lacking = false;
        for place in feasible.counted() {
            match topology.domain(place) {
                Some(domain) => is_feasible[domain] = true,
                None => is_lacking = true,
            }
        }
        let domains = is_feasible.iter().filter(|it| **it).count() + usize::from(is_lacking);
        let mut pods = vec![0; topology.len()];
        for kin in found {
            for (domain, count) in kin.domains(&topology, constraint.counted(labels, cycle)) {
                if is_feasible[domain] {
                    pods[domain] += count;
                }
            }
        }
        Self { topology, pods, by_node: false, weight: weight(domains), max_skew }
    }

    /// What it has against the node at a place; nothing if that is in no domain.
    fn score(&self, place: usize) -> Option<f64> {
        let domain = self.topology.domain(place)?;
        let count = self.pods[if self.by_node { place } else { domain }];
        Some(count as f64 * self.weight + f64::from(self.max_skew - 1))
    }
}

/// How much a Pod in one of so many domains counts.
fn weight(domains: usize) -> f64 {
    (domains as f64 + 2.0).ln()
}
