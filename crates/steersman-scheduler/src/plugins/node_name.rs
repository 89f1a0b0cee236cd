//! A Pod that names its node goes to that node.

use super::{FilterPlugin, refuse};
use crate::snapshot::{NodeView, PodView, bound_to};

pub(super) struct NodeName;

impl FilterPlugin for NodeName {
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>> {
        match bound_to(pod.pod) {
            Some(name) if node.node.metadata.name.as_deref() != Some(name) => {
                refuse("node(s) didn't match the requested node name")
            }
            _ => Ok(()),
        }
    }
}
