//! The status of a budget: objects and the time in, the status out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use steersman::conditions::{ConditionType, Conditions};

use crate::intstr::{Round, scaled};
use crate::pod;
use crate::pod_control::name_of;

/// Whether a Pod may go.
const DISRUPTION_ALLOWED: ConditionType = ConditionType::new("DisruptionAllowed");
/// How long a Pod whose eviction was granted may take until its deletion is seen.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);

/// How many Pods there should be, and how many of them must stay healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) pods: i32,
    pub(super) healthy: i32,
}

/// A status, and what follows from it.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) status: PodDisruptionBudgetStatus,
    /// Pods whose eviction was granted and that are still there.
    pub(super) not_deleted: Vec<Arc<Pod>>,
    /// When it must be looked at again.
    pub(super) recheck_in: Option<Duration>,
}

/// Whether the budget speaks of a part of all Pods that there should be, so that their controllers
/// must be asked.
pub(super) fn needs_scale(budget: &PodDisruptionBudget) -> bool {
    let Some(spec) = &budget.spec else { return false };
    spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
}

/// What the budget asks for, if there should be `scale` Pods and there are `found`.
pub(super) fn expected(budget: &PodDisruptionBudget, scale: i32, found: usize) -> Expected {
    let spec = budget.spec.clone().unwrap_or_default();
    match (spec.max_unavailable, spec.min_available) {
        (Some(max), _) => {
            let missing = scaled(&max, scale, Round::Up);
            Expected { pods: scale, healthy: scale.saturating_sub(missing).max(0) }
        }
        (None, Some(IntOrString::Int(healthy))) => {
            Expected { pods: i32::try_from(found).unwrap_or(i32::MAX), healthy }
        }
        (None, Some(share)) => Expected { pods: scale, healthy: scaled(&share, scale, Round::Up) },
        (None, None) => Expected { pods: 0, healthy: 0 },
    }
}

/// The status of a budget that covers these Pods.
pub(super) fn report(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    expected: Expected,
    now: Timestamp,
) -> Report {
    let known = budget.status.as_ref().and_then(|status| status.disrupted_pods.clone());
    let known = known.unwrap_or_default();
    let mut disrupted: BTreeMap<String, Time> = BTreeMap::new();
    let mut not_deleted = Vec::new();
    let mut recheck_in: Option<Duration> = None;
    for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        let Some(granted) = known.get(name_of(pod)) else { continue };
        let left = DELETION_TIMEOUT - now.duration_since(granted.0);
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => {
                disrupted.insert(name_of(pod).to_owned(), granted.clone());
                recheck_in = recheck_in.into_iter().chain([left]).min();
            }
            _ => not_deleted.push(Arc::clone(pod)),
        }
    }
    let is_healthy = |pod: &&Arc<Pod>| {
        pod.metadata.deletion_timestamp.is_none()
            && !disrupted.contains_key(name_of(pod))
            && pod::is_ready(pod)
    };
    let healthy = i32::try_from(pods.iter().filter(is_healthy).count()).unwrap_or(i32::MAX);
    let allowed = if expected.pods > 0 { (healthy - expected.healthy).max(0) } else { 0 };
    let generation = budget.metadata.generation;
    let mut conditions = conditions_of(budget);
    let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
    let condition = DISRUPTION_ALLOWED.is(allowed > 0, reason, "");
    conditions.set_condition(condition.observed(generation.unwrap_or(0)));
    let status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(expected.healthy),
        expected_pods: Some(expected.pods),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: generation,
        conditions: Some(conditions),
    };
    Report { status, not_deleted, recheck_in }
}

/// The status of a budget that cannot be computed: nothing may go.
pub(super) fn failed(budget: &PodDisruptionBudget, message: &str) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone().unwrap_or_default();
    let mut conditions = conditions_of(budget);
    let condition = DISRUPTION_ALLOWED.no("SyncFailed", message);
    conditions.set_condition(condition.observed(status.observed_generation.unwrap_or(0)));
    status.disruptions_allowed = Some(0);
    status.conditions = Some(conditions);
    status
}

fn conditions_of(budget: &PodDisruptionBudget) -> Vec<Condition> {
    budget.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default()
}
