//! A Pod goes only to nodes whose taints it tolerates, and rather to those with fewer that it is only
//! asked to avoid.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use steersman::placement::tolerates;

use super::normalize::by_largest;
use super::pod::{is_of, tolerations};
use crate::framework::{
    Action, ClusterEvent, Cycle, Hint, Interest, NodeInfo, Object, Plugin, Points, Refusal,
    Resource,
};

/// Compares taints and tolerations.
pub(crate) struct TaintToleration;

impl Plugin for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn points(&self) -> Points {
        Points::FILTER | Points::SCORE
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_TAINT),
                Interest::new(Resource::UnscheduledPod, Action::POD_TOLERATION),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        let Object::Node(change) = &event.object else { return is_of(pod, event).into() };
        let tolerated = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
            tolerates_all(tolerations(pod), taints.unwrap_or_default())
        };
        let was_not = change.old.as_deref().is_none_or(|node| !tolerated(node));
        (was_not && change.new.as_deref().is_some_and(tolerated)).into()
    }

    fn is_local(&self) -> bool {
        true
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        match tolerates_all(tolerations(cycle.pod), node.taints()) {
            true => Ok(()),
            false => Err(Refusal::unresolvable("node(s) had untolerated taint(s)")),
        }
    }

    fn scores_locally(&self, _: &Cycle<'_>) -> bool {
        true
    }

    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let about_it = |toleration: &&Toleration| {
            let effect = toleration.effect.as_deref().unwrap_or_default();
            effect.is_empty() || effect == "PreferNoSchedule"
        };
        let tolerations = tolerations(cycle.pod);
        let is_against = |taint: &&Taint| {
            is_to_be_avoided(taint)
                && !tolerations.iter().filter(about_it).any(|it| tolerates(it, taint))
        };
        node.taints().iter().filter(is_against).count().try_into().unwrap_or(i64::MAX)
    }

    fn normalize(&self, _: &Cycle<'_>, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        by_largest(scores, true);
    }
}

fn is_to_be_avoided(taint: &Taint) -> bool {
    taint.effect == "PreferNoSchedule"
}

/// Whether no taint keeps a Pod with these tolerations away.
pub(crate) fn tolerates_all(tolerations: &[Toleration], taints: &[Taint]) -> bool {
    let keeps_away = |taint: &&Taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute");
    taints.iter().filter(keeps_away).all(|taint| tolerations.iter().any(|it| tolerates(it, taint)))
}
