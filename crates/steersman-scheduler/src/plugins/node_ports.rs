//! Two Pods on one node cannot have the same port of it.

use super::{FilterPlugin, refuse};
use crate::snapshot::{NodeView, PodView};

pub(super) struct NodePorts;

impl FilterPlugin for NodePorts {
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>> {
        let taken = |port| node.used.ports.iter().any(|used| used.conflicts(port));
        if pod.requests.ports.iter().any(taken) {
            return refuse("node(s) didn't have free ports for the requested pod ports");
        }
        Ok(())
    }
}
