//! What size a target gets, and what is said about it.

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscalerSpec, MetricStatus};

use super::history::History;
use super::limits::{self, Said, Sizes};
use super::proposal::{Proposal, Unable};
use super::status::{ABLE_TO_SCALE, Condition, SCALING_ACTIVE, SCALING_LIMITED};

/// What an autoscaler does about its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing: somebody has switched its target off.
    Disabled,
    /// Gives it this size, because of this.
    Rescale { replicas: i32, reason: String },
    /// Leaves it as it is.
    Stay,
}

/// What can be decided without metrics; `None` if those are needed.
pub(super) fn without_metrics(spec: &HorizontalPodAutoscalerSpec, current: i32) -> Option<Plan> {
    let rescale = |replicas, reason: &str| Plan::Rescale { replicas, reason: reason.to_owned() };
    let min = min_replicas(spec);
    if current == 0 {
        Some(Plan::Disabled)
    } else if current > spec.max_replicas {
        let reason = "Current number of replicas above Spec.MaxReplicas";
        Some(rescale(spec.max_replicas, reason))
    } else if current < min {
        Some(rescale(min, "Current number of replicas below Spec.MinReplicas"))
    } else {
        None
    }
}

/// What all metrics of an autoscaler say together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// The largest proposal and the metric that made it, unless it cannot be trusted.
    pub(super) proposal: Option<(i32, String)>,
    /// What is said of whether there are metrics.
    pub(super) condition: Condition,
    /// One for each metric, empty where there is no value.
    pub(super) statuses: Vec<MetricStatus>,
    /// What went wrong, if anything did.
    pub(super) error: Option<String>,
}

/// Sums up what the metrics propose. If some of them cannot tell, the others may make the target
/// grow, but not shrink.
pub(super) fn combine(proposals: Vec<Result<Proposal, Unable>>, current: i32) -> Measured {
    let count = proposals.len();
    let mut statuses = Vec::with_capacity(count);
    let mut largest: Option<(i32, String)> = None;
    let mut failures = Vec::new();
    for proposal in proposals {
        match proposal {
            Ok(Proposal { replicas, metric, status }) => {
                statuses.push(status);
                if largest.as_ref().is_none_or(|(most, _)| *most == 0 || replicas > *most) {
                    largest = Some((replicas, metric));
                }
            }
            Err(unable) => {
                statuses.push(MetricStatus::default());
                failures.push(unable);
            }
        }
    }
    let error = failures.first().map(|first| {
        format!(
            "invalid metrics ({} invalid out of {count}), first error is: {}",
            failures.len(),
            first.error
        )
    });
    let trusted = |(replicas, _): &(i32, String)| failures.is_empty() || *replicas >= current;
    let proposal = largest.filter(trusted);
    let condition = match (&proposal, failures.first()) {
        (None, Some(first)) => {
            let cause = &first.cause;
            let message = format!("the HPA was unable to compute the replica count: {cause}");
            Condition::new(SCALING_ACTIVE, false, first.reason, message)
        }
        (largest, _) => {
            let metric = largest.as_ref().map_or("", |(_, metric)| metric);
            let message =
                format!("the HPA was able to successfully calculate a replica count from {metric}");
            Condition::new(SCALING_ACTIVE, true, "ValidMetricFound", message)
        }
    };
    Measured { proposal, condition, statuses, error }
}

/// Makes a plan of what the metrics propose, and says what came between.
pub(super) fn by_metrics(
    spec: &HorizontalPodAutoscalerSpec,
    current: i32,
    (proposed, metric): (i32, &str),
    history: &mut History,
    now: Timestamp,
) -> (Plan, [Condition; 2]) {
    let desired = proposed.max(0);
    let reason = if desired > current {
        format!("{metric} above target")
    } else if desired < current {
        "All metrics below target".to_owned()
    } else {
        String::new()
    };
    let sizes = Sizes { current, desired, min: min_replicas(spec), max: spec.max_replicas };
    let limited = limits::limit(sizes, spec.behavior.as_ref(), history, now);
    let Said(able, able_message) = limited.able;
    let (is_limited, Said(limit, limit_message)) = limited.limited;
    let conditions = [
        Condition::new(ABLE_TO_SCALE, true, able, able_message),
        Condition::new(SCALING_LIMITED, is_limited, limit, limit_message),
    ];
    let plan = match limited.replicas {
        replicas if replicas == current => Plan::Stay,
        replicas => Plan::Rescale { replicas, reason },
    };
    (plan, conditions)
}

/// The fewest replicas; one unless it says otherwise.
fn min_replicas(spec: &HorizontalPodAutoscalerSpec) -> i32 {
    spec.min_replicas.unwrap_or(1)
}
