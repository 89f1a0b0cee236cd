//! What an autoscaler says of itself: conditions, sizes and metrics.

use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(super) const ABLE_TO_SCALE: &str = "AbleToScale";
pub(super) const SCALING_ACTIVE: &str = "ScalingActive";
pub(super) const SCALING_LIMITED: &str = "ScalingLimited";
/// Only what scales to zero has this one, and that is behind a gate that is off.
pub(super) const SCALED_TO_ZERO: &str = "ScaledToZero";

/// A condition to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) type_: &'static str,
    pub(super) holds: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Condition {
    pub(super) fn new(
        type_: &'static str,
        holds: bool,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { type_, holds, reason, message: message.into() }
    }
}

/// Sets a condition. Its time changes only with whether it holds.
pub(super) fn set(status: &mut HorizontalPodAutoscalerStatus, new: Condition, now: &Time) {
    let conditions = status.conditions.get_or_insert_default();
    let at = conditions.iter().position(|condition| condition.type_ == new.type_);
    let at = at.unwrap_or_else(|| {
        let type_ = new.type_.to_owned();
        conditions.push(HorizontalPodAutoscalerCondition { type_, ..Default::default() });
        conditions.len() - 1
    });
    let holds = if new.holds { "True" } else { "False" };
    let condition = &mut conditions[at];
    if condition.status != holds {
        condition.status = holds.to_owned();
        condition.last_transition_time = Some(now.clone());
    }
    condition.reason = Some(new.reason.to_owned());
    condition.message = Some(new.message);
}

/// Takes a condition away.
pub(super) fn remove(status: &mut HorizontalPodAutoscalerStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != type_);
    }
}

/// Sets what was found and what is wanted. The rest is kept, except for the generation, of which
/// Kubernetes tells nothing.
pub(super) fn report(
    status: &mut HorizontalPodAutoscalerStatus,
    current: i32,
    desired: i32,
    metrics: Vec<MetricStatus>,
) {
    status.current_replicas = Some(current);
    status.desired_replicas = desired;
    status.current_metrics = Some(metrics).filter(|metrics| !metrics.is_empty());
    status.observed_generation = None;
}
