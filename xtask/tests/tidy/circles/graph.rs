//! Circles in a graph.

use std::collections::{BTreeMap, BTreeSet};

/// Each node with those that it points to.
pub(super) type Graph<Node> = BTreeMap<Node, BTreeSet<Node>>;

/// Every node that can be reached from one, itself only if an arrow leads back to it.
fn reached<Node: Ord + Clone>(graph: &Graph<Node>, from: &Node) -> BTreeSet<Node> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![from];
    while let Some(node) = ahead.pop() {
        for next in graph.get(node).into_iter().flatten() {
            if reached.insert(next.clone()) {
                ahead.push(next);
            }
        }
    }
    reached
}

/// The largest sets of nodes in which each reaches each, of two and more.
pub(super) fn circles<Node: Ord + Clone>(graph: &Graph<Node>) -> Vec<BTreeSet<Node>> {
    let reached: BTreeMap<&Node, BTreeSet<Node>> =
        graph.keys().map(|node| (node, reached(graph, node))).collect();
    let mut found = BTreeSet::new();
    for (node, ahead) in &reached {
        let back = |other: &&Node| reached.get(other).is_some_and(|set| set.contains(*node));
        let circle: BTreeSet<Node> = ahead.iter().filter(back).cloned().collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

#[test]
fn nodes_that_reach_each_other_are_one_circle() {
    let arrows = [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (5, 6), (6, 6)];
    let mut graph = Graph::new();
    for (from, to) in arrows {
        graph.entry(from).or_insert_with(BTreeSet::new).insert(to);
    }
    assert_eq!(circles(&graph), [BTreeSet::from([1, 2, 3]), BTreeSet::from([4, 5])]);
}
