//! The decision for one Pod: the best node, or why there is none.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::plugins::{FILTERS, SCORES};
use crate::snapshot::{NodeView, PodView};

/// Where a Pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// To the node with this name.
    Node(String),
    /// Nowhere; the message says why.
    Nowhere(String),
}

/// Chooses among the nodes. Of equally good ones the first by name, so that the same cluster
/// always gives the same answer.
pub(crate) fn decide(pod: &PodView<'_>, nodes: &[NodeView<'_>]) -> Decision {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut feasible = Vec::new();
    for node in nodes {
        match refused(pod, node) {
            Some(why) => why.into_iter().for_each(|why| *reasons.entry(why).or_default() += 1),
            None => feasible.push(node),
        }
    }
    let name = |node: &NodeView<'_>| node.node.metadata.name.clone().unwrap_or_default();
    let best = feasible.into_iter().max_by_key(|node| (score(pod, node), Reverse(name(node))));
    match best {
        Some(node) => Decision::Node(name(node)),
        None => Decision::Nowhere(message(nodes.len(), &reasons)),
    }
}

/// Why a node cannot run the Pod, according to the first filter that says so.
fn refused(pod: &PodView<'_>, node: &NodeView<'_>) -> Option<Vec<String>> {
    FILTERS.iter().find_map(|filter| filter.filter(pod, node).err())
}

fn score(pod: &PodView<'_>, node: &NodeView<'_>) -> i64 {
    SCORES.iter().map(|(plugin, weight)| plugin.score(pod, node) * weight).sum()
}

/// What a Pod is told that fits on none of so many nodes for a reason of its own.
pub(crate) fn nowhere(nodes: usize, why: &str) -> String {
    match nodes {
        0 => message(0, &BTreeMap::new()),
        _ => format!("0/{nodes} nodes are available: {why}."),
    }
}

/// What a Pod that fits nowhere is told, as Kubernetes words it.
fn message(nodes: usize, reasons: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".into();
    }
    let mut counted: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counted.sort();
    format!("0/{nodes} nodes are available: {}.", counted.join(", "))
}
