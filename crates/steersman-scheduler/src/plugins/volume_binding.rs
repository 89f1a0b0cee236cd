//! A Pod goes only where its volumes can be used, or made.

use super::FilterPlugin;
use crate::snapshot::{NodeView, PodView};

pub(super) struct VolumeBinding;

impl FilterPlugin for VolumeBinding {
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>> {
        match pod.volumes {
            None => Ok(()),
            Some(volumes) => volumes.on(node.node).map(drop),
        }
    }
}
