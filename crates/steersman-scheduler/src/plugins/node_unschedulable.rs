//! Nodes that are cordoned take no new Pods, except those that tolerate it.

use k8s_openapi::api::core::v1::Taint;

use super::taint_toleration::is_tolerated;
use super::{FilterPlugin, refuse};
use crate::snapshot::{NodeView, PodView};

pub(super) struct NodeUnschedulable;

impl FilterPlugin for NodeUnschedulable {
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>> {
        let cordoned = node.node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        let taint = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        if cordoned && !is_tolerated(&taint, pod.pod) {
            return refuse("node(s) were unschedulable");
        }
        Ok(())
    }
}
