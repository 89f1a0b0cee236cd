//! For how long kubelets may keep what they have read, by how many nodes there are.

use std::collections::BTreeSet;

use steersman::ObjectKey;

/// From how many nodes to how many, and for how many seconds. The ranges overlap, so that a cluster
/// at an edge does not change all the time.
const STEPS: [(usize, usize, u32); 5] =
    [(0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, usize::MAX, 300)];

/// How many nodes there are.
#[derive(Debug, Default)]
pub(super) struct Size {
    nodes: BTreeSet<ObjectKey>,
    step: usize,
}

impl Size {
    /// There is another node. Gives whether that changes the time.
    pub(super) fn add(&mut self, node: &ObjectKey) -> bool {
        self.nodes.insert(node.clone());
        let grows = self.nodes.len() > STEPS[self.step].1;
        self.step += usize::from(grows);
        grows
    }

    /// A node is gone. Gives whether that changes the time.
    pub(super) fn remove(&mut self, node: &ObjectKey) -> bool {
        self.nodes.remove(node);
        let shrinks = self.nodes.len() < STEPS[self.step].0;
        self.step -= usize::from(shrinks);
        shrinks
    }

    /// The nodes that there are.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &ObjectKey> {
        self.nodes.iter()
    }

    /// For how long kubelets may keep what they have read.
    pub(super) fn ttl_seconds(&self) -> u32 {
        STEPS[self.step].2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_grows_with_the_cluster_and_shrinks_later() {
        let mut size = Size::default();
        let node = |n: usize| ObjectKey::named(format!("node-{n}"));
        let mut steps = Vec::new();
        for n in 1..=2001 {
            if size.add(&node(n)) {
                steps.push((n, size.ttl_seconds()));
            }
        }
        assert_eq!(steps, [(101, 15), (501, 30), (1001, 60), (2001, 300)]);
        steps.clear();
        for n in (1..=2001).rev() {
            if size.remove(&node(n)) {
                steps.push((n - 1, size.ttl_seconds()));
            }
        }
        assert_eq!(steps, [(1799, 60), (899, 30), (449, 15), (89, 0)]);
    }
}
