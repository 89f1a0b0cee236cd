//! Disruption budgets: how many Pods of a kind may go.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::framework::{PodInfo, Selector};

/// How many Pods of a kind may still go.
pub(super) struct Budget {
    namespace: String,
    selector: Selector,
    allowed: i32,
    /// Pods that are about to go, and counted already.
    disrupted: HashSet<String>,
}

impl Budget {
    pub(super) fn of(budget: &PodDisruptionBudget) -> Self {
        let status = budget.status.as_ref();
        let disrupted = status.and_then(|status| status.disrupted_pods.as_ref());
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        Self {
            namespace: budget.metadata.namespace.clone().unwrap_or_default(),
            selector: Selector::of(selector),
            allowed: status.and_then(|status| status.disruptions_allowed).unwrap_or(0),
            disrupted: disrupted.into_iter().flatten().map(|(name, _)| name.clone()).collect(),
        }
    }

    fn protects(&self, pod: &PodInfo) -> bool {
        self.namespace == pod.namespace()
            && !self.selector.is_empty()
            && self.selector.matches(&pod.labels)
            && !self.disrupted.contains(&*pod.key.name)
    }
}

/// Which Pods no budget lets go if all go, and the others; in the same order.
pub(super) fn protected(
    pods: Vec<Arc<PodInfo>>,
    budgets: &[Budget],
) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
    let mut allowed: Vec<i32> = budgets.iter().map(|budget| budget.allowed).collect();
    pods.into_iter().partition(|pod| {
        let mut is_violating = false;
        if !pod.labels.is_empty() {
            for (budget, allowed) in budgets.iter().zip(&mut allowed) {
                if budget.protects(pod) {
                    *allowed -= 1;
                    is_violating |= *allowed < 0;
                }
            }
        }
        is_violating
    })
}
