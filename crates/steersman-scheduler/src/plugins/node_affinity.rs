//! A Pod goes only to nodes that match its node selector and its required node affinity.

use steersman::placement::selects;

use super::{FilterPlugin, refuse};
use crate::snapshot::{NodeView, PodView};

pub(super) struct NodeAffinity;

impl FilterPlugin for NodeAffinity {
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>> {
        if pod.pod.spec.as_ref().is_none_or(|spec| selects(spec, node.node)) {
            Ok(())
        } else {
            refuse("node(s) didn't match Pod's node affinity/selector")
        }
    }
}
