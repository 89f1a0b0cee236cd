//! How a recommendation is stabilised and limited before anybody acts on it.
//!
//! Without `behavior`, shrinking waits until nobody has recommended more for five minutes, and
//! growing is limited to twice the size, or four. With it, both directions have a window in which
//! the most cautious recommendation counts, and policies that limit the change in a period.

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{HPAScalingRules, HorizontalPodAutoscalerBehavior};

use super::history::{History, before};

/// How much larger a target may become at once: this many times, or the minimum if that is more.
const UP_FACTOR: i32 = 2;
const UP_MINIMUM: i32 = 4;

const READY: Said = Said("ReadyForNewScale", "recommended size matches current size");
const DOWN_STABILIZED: Said = Said(
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILIZED: Said = Said(
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const IN_RANGE: Said =
    Said("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_FEW: Said =
    Said("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const TOO_MANY: Said =
    Said("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FAST_UP: Said = Said(
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
);
const TOO_FAST_DOWN: Said = Said(
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);

/// The reason and the message of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said(pub(super) &'static str, pub(super) &'static str);

/// The sizes that matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) current: i32,
    /// What the metrics ask for.
    pub(super) desired: i32,
    pub(super) min: i32,
    pub(super) max: i32,
}

/// What is left of a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    pub(super) replicas: i32,
    /// What is said of whether the target can be scaled.
    pub(super) able: Said,
    /// Whether a limit made it another number, and what is said of that.
    pub(super) limited: (bool, Said),
}

/// Stabilises and limits a recommendation, and remembers it.
pub(super) fn limit(
    sizes: Sizes,
    behavior: Option<&HorizontalPodAutoscalerBehavior>,
    history: &mut History,
    now: Timestamp,
) -> Limited {
    let rules = behavior.and_then(|all| Some((all.scale_up.as_ref()?, all.scale_down.as_ref()?)));
    let (stable, stabilized) = match rules {
        None => (stabilize(sizes, history, now), DOWN_STABILIZED),
        Some((up, down)) => stabilize_by_rules(sizes, up, down, history, now),
    };
    let able = if stable == sizes.desired { READY } else { stabilized };
    let stable = Sizes { desired: stable, ..sizes };
    let (replicas, said) = match rules {
        None => within_range(stable),
        Some((up, down)) => within_rates(stable, up, down, history, now),
    };
    Limited { replicas, able, limited: (replicas != stable.desired, said) }
}

/// The longest period of any policy of these rules, in seconds.
pub(super) fn longest_period(rules: Option<&HPAScalingRules>) -> i32 {
    let policies = rules.and_then(|rules| rules.policies.as_ref());
    policies.into_iter().flatten().map(|policy| policy.period_seconds).max().unwrap_or(0)
}

fn stabilize(sizes: Sizes, history: &mut History, now: Timestamp) -> i32 {
    let cutoff = before(now, history.downscale_stabilization);
    history.recommend(sizes.desired, now, cutoff);
    history.recommendations.iter().map(|it| it.replicas).max().unwrap_or(sizes.desired)
}

fn stabilize_by_rules(
    sizes: Sizes,
    up: &HPAScalingRules,
    down: &HPAScalingRules,
    history: &mut History,
    now: Timestamp,
) -> (i32, Said) {
    let up_cutoff = before(now, up.stabilization_window_seconds.unwrap_or(0));
    let down_window = down.stabilization_window_seconds;
    let down_window = down_window.unwrap_or(history.downscale_stabilization);
    let down_cutoff = before(now, down_window);
    let (mut lowest, mut highest) = (sizes.desired, sizes.desired);
    for old in &history.recommendations {
        if old.at > up_cutoff {
            lowest = lowest.min(old.replicas);
        }
        if old.at > down_cutoff {
            highest = highest.max(old.replicas);
        }
    }
    history.recommend(sizes.desired, now, up_cutoff.min(down_cutoff));
    let said = if sizes.desired >= sizes.current { UP_STABILIZED } else { DOWN_STABILIZED };
    (sizes.current.max(lowest).min(highest), said)
}

fn within_range(Sizes { current, desired, min, max }: Sizes) -> (i32, Said) {
    let fastest = current.saturating_mul(UP_FACTOR).max(UP_MINIMUM);
    let (most, why) = if max > fastest { (fastest, TOO_FAST_UP) } else { (max, TOO_MANY) };
    if desired < min {
        (min, TOO_FEW)
    } else if desired > most {
        (most, why)
    } else {
        (desired, IN_RANGE)
    }
}

fn within_rates(
    Sizes { current, desired, min, max }: Sizes,
    up: &HPAScalingRules,
    down: &HPAScalingRules,
    history: &History,
    now: Timestamp,
) -> (i32, Said) {
    if desired > current {
        let fastest = up_limit(up, current, history, now).max(current);
        let (most, why) = if max > fastest { (fastest, TOO_FAST_UP) } else { (max, TOO_MANY) };
        if desired > most {
            return (most, why);
        }
    } else if desired < current {
        let fastest = down_limit(down, current, history, now).min(current);
        let (least, why) = if min < fastest { (fastest, TOO_FAST_DOWN) } else { (min, TOO_FEW) };
        if desired < least {
            return (least, why);
        }
    }
    (desired, IN_RANGE)
}

/// The most replicas that the policies for growing allow now.
fn up_limit(rules: &HPAScalingRules, current: i32, history: &History, now: Timestamp) -> i32 {
    let policies = rules.policies.iter().flatten();
    let sizes = policies.map(|policy| {
        let start = history.at_start_of(policy.period_seconds, current, now);
        match policy.type_.as_str() {
            "Pods" => start.saturating_add(policy.value),
            // Rounded up, or a small target would never grow.
            _ => (f64::from(start) * (1.0 + f64::from(policy.value) / 100.0)).ceil() as i32,
        }
    });
    match rules.select_policy.as_deref() {
        Some("Disabled") => current,
        Some("Min") => sizes.min().unwrap_or(i32::MAX),
        _ => sizes.max().unwrap_or(i32::MIN),
    }
}

/// The fewest replicas that the policies for shrinking allow now.
fn down_limit(rules: &HPAScalingRules, current: i32, history: &History, now: Timestamp) -> i32 {
    let policies = rules.policies.iter().flatten();
    let sizes = policies.map(|policy| {
        let start = history.at_start_of(policy.period_seconds, current, now);
        match policy.type_.as_str() {
            "Pods" => start.saturating_sub(policy.value),
            _ => (f64::from(start) * (1.0 - f64::from(policy.value) / 100.0)) as i32,
        }
    });
    match rules.select_policy.as_deref() {
        Some("Disabled") => current,
        Some("Min") => sizes.max().unwrap_or(i32::MIN),
        _ => sizes.min().unwrap_or(i32::MAX),
    }
}
