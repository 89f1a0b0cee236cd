//! Which simulated nodes are out of reach: as if somebody had pulled their cable.
//!
//! The agent of such a node neither sees nor says anything. Its Lease is not renewed, its status and
//! those of its Pods stay as they were, Pods that are deleted stay until it is back; its containers
//! go on. Clones share what they know.

use std::collections::BTreeMap;

use tokio::sync::watch;
use tokio::time::Instant;

/// The simulated nodes, any of which can be lost: `nodes.named("node-1").lost()`.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// Since when, by the name of the node.
    lost: watch::Sender<BTreeMap<String, Instant>>,
}

/// One simulated node, to be lost or to come back.
#[derive(Debug)]
pub struct NodeOutage {
    outages: Outages,
    name: String,
}

impl Outages {
    /// The node of this name.
    pub fn named(&self, name: impl Into<String>) -> NodeOutage {
        NodeOutage { outages: self.clone(), name: name.into() }
    }

    /// The same nodes are lost, and from here on others than in these.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { lost: watch::Sender::new(self.lost.borrow().clone()) }
    }

    /// Since when the node of this name is lost, if it is.
    pub(crate) fn since(&self, name: &str) -> Option<Instant> {
        self.lost.borrow().get(name).copied()
    }

    /// Hears of nodes that are lost or come back.
    pub(crate) fn changes(&self) -> watch::Receiver<BTreeMap<String, Instant>> {
        self.lost.subscribe()
    }
}

impl NodeOutage {
    /// From now on nothing is heard of it.
    pub fn lost(self) {
        let Self { outages, name } = self;
        outages.lost.send_if_modified(|lost| {
            let is_new = !lost.contains_key(&name);
            lost.entry(name).or_insert_with(Instant::now);
            is_new
        });
    }

    /// It is there again, and does what it has missed.
    pub fn back(self) {
        self.outages.lost.send_if_modified(|lost| lost.remove(&self.name).is_some());
    }
}

/// The names of which one of the two knows and the other does not.
pub(crate) fn differing(
    before: &BTreeMap<String, Instant>,
    after: &BTreeMap<String, Instant>,
) -> Vec<String> {
    let lost = after.keys().filter(|name| !before.contains_key(*name));
    let back = before.keys().filter(|name| !after.contains_key(*name));
    lost.chain(back).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_node_is_lost_until_it_is_back_and_forks_are_by_themselves() {
        let nodes = Outages::default();
        let mut changes = nodes.changes();
        let start = Instant::now();
        nodes.named("a").lost();
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        nodes.named("a").lost();
        assert_eq!(nodes.since("a"), Some(start), "it was lost already");
        let before = changes.borrow_and_update().clone();
        let fork = nodes.fork();
        nodes.named("a").back();
        nodes.named("b").lost();
        assert_eq!((nodes.since("a"), fork.since("b")), (None, None));
        assert_eq!(fork.since("a"), Some(start));
        assert_eq!(differing(&before, &changes.borrow_and_update()), ["b", "a"]);
        nodes.named("a").back();
        assert!(!changes.has_changed().unwrap(), "it was there already");
    }
}
