//! Nodes keep Pods away by taints; Pods may tolerate them.

use k8s_openapi::api::core::v1::{Pod, Taint};
use steersman::placement::tolerates;

use super::{FilterPlugin, refuse};
use crate::snapshot::{NodeView, PodView};

pub(super) struct TaintToleration;

impl FilterPlugin for TaintToleration {
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>> {
        let taints = node.node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        let mut hard = taints.into_iter().flatten().filter(|taint| forbids(taint));
        if hard.all(|taint| is_tolerated(taint, pod.pod)) {
            Ok(())
        } else {
            refuse("node(s) had untolerated taint(s)")
        }
    }
}

/// Whether a taint keeps Pods away, and does not merely discourage them.
fn forbids(taint: &Taint) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
}

/// Whether any toleration of the Pod is about this taint.
pub(super) fn is_tolerated(taint: &Taint, pod: &Pod) -> bool {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    tolerations.into_iter().flatten().any(|toleration| tolerates(toleration, taint))
}
