//! The names of nodes in the order in which they are tried: zone by zone in turns, so that those that
//! are looked at are spread over all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;

/// The labels that tell region and zone; the old names come first, as in Kubernetes.
const REGION: [&str; 2] =
    ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"];
const ZONE: [&str; 2] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];

/// A region and a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Zone {
    region: String,
    zone: String,
}

impl Zone {
    pub(super) fn of(node: &Node) -> Self {
        let labels = node.metadata.labels.as_ref();
        let label = |names: [&str; 2]| {
            let mut found = names.iter().filter_map(|name| labels?.get(*name));
            found.next().cloned().unwrap_or_default()
        };
        Self { region: label(REGION), zone: label(ZONE) }
    }
}

/// Nodes by zone.
#[derive(Debug, Default)]
pub(super) struct NodeTree(BTreeMap<Zone, BTreeSet<Arc<str>>>);

impl NodeTree {
    pub(super) fn add(&mut self, zone: Zone, name: Arc<str>) {
        self.0.entry(zone).or_default().insert(name);
    }

    pub(super) fn remove(&mut self, zone: &Zone, name: &str) {
        if let Some(names) = self.0.get_mut(zone) {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(zone);
            }
        }
    }

    /// One of each zone, then the next of each.
    pub(super) fn list(&self) -> Vec<Arc<str>> {
        let mut zones: Vec<_> = self.0.values().map(BTreeSet::iter).collect();
        let mut names = Vec::new();
        while !zones.is_empty() {
            zones.retain_mut(|zone| {
                let next = zone.next();
                names.extend(next.cloned());
                next.is_some()
            });
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_take_turns() {
        let mut tree = NodeTree::default();
        let zone = |zone: &str| Zone { region: String::new(), zone: zone.to_owned() };
        for (zone_name, name) in [("b", "3"), ("a", "1"), ("a", "0"), ("a", "2"), ("c", "4")] {
            tree.add(zone(zone_name), name.into());
        }
        assert_eq!(tree.list().join(" "), "0 3 4 1 2");
        tree.remove(&zone("b"), "3");
        tree.remove(&zone("a"), "1");
        assert_eq!(tree.list().join(" "), "0 4 2");
    }
}
