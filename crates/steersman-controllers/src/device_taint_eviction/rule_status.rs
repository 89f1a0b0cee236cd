//! What the status of a rule says of the Pods that it sends away: numbers in, a condition out.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::resource::v1beta2::DeviceTaintRule;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::plan::NO_EXECUTE;

/// The condition that rules have.
pub(super) const EVICTION_IN_PROGRESS: &str = "EvictionInProgress";
/// What does nothing, and says what would happen.
pub(super) const NO_EFFECT: &str = "None";
/// The shortest time between two reports, while Pods go.
pub(super) const PERIOD: SignedDuration = SignedDuration::from_secs(10);

/// What a rule does at the moment, or would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// The devices in slices that it selects, and those among them that claims have.
    pub(super) devices: usize,
    pub(super) allocated: usize,
    /// The Pods that have to go, and the namespaces that they are in.
    pub(super) pods: usize,
    pub(super) namespaces: usize,
    /// The Pods that have gone since the controller was started.
    pub(super) evicted: usize,
}

/// The condition that a rule has.
pub(super) fn condition_of(rule: &DeviceTaintRule) -> Option<&Condition> {
    let status = rule.status.as_ref();
    let mut conditions = status.and_then(|it| it.conditions.as_ref()).into_iter().flatten();
    conditions.find(|condition| condition.type_ == EVICTION_IN_PROGRESS)
}

/// When a rule's status may be written again: at once, if it does not speak of what the rule says now.
pub(super) fn may_write_at(rule: &DeviceTaintRule) -> Option<Timestamp> {
    let condition = condition_of(rule)?;
    let is_of_now = condition.observed_generation == rule.metadata.generation;
    is_of_now.then(|| condition.last_transition_time.0.saturating_add(PERIOD).ok()).flatten()
}

/// The condition that a rule is to have, if it has not.
pub(super) fn condition(rule: &DeviceTaintRule, census: Census, now: &Time) -> Option<Condition> {
    let (status, reason, message) = match rule.spec.taint.effect.as_str() {
        NO_EXECUTE => evicting(census),
        NO_EFFECT => ("False", "NoEffect", supposed(census)),
        _ => ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.".into()),
    };
    let gone = match census.evicted {
        0 => None,
        1 => Some("1 pod evicted since starting the controller.".to_owned()),
        many => Some(format!("{many} pods evicted since starting the controller.")),
    };
    let parts = [Some(message).filter(|it| !it.is_empty()), gone];
    let message = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let new = Condition {
        type_: EVICTION_IN_PROGRESS.into(),
        status: status.into(),
        reason: reason.into(),
        message,
        observed_generation: rule.metadata.generation,
        last_transition_time: now.clone(),
    };
    let old = condition_of(rule);
    let says_so = old.is_some_and(|old| {
        *old == Condition { last_transition_time: old.last_transition_time.clone(), ..new.clone() }
    });
    (!says_so).then_some(new)
}

fn evicting(census: Census) -> (&'static str, &'static str, String) {
    match census {
        Census { pods: 0, evicted: 0, .. } => ("False", "NotStarted", String::new()),
        Census { pods: 0, .. } => ("False", "Completed", String::new()),
        Census { pods, namespaces, .. } => {
            let pods = many(pods, "pod needs", "pods need");
            let namespaces = many(namespaces, "namespace", "different namespaces");
            ("True", "PodsPendingEviction", format!("{pods} to be evicted in {namespaces}."))
        }
    }
}

/// What would happen.
fn supposed(census: Census) -> String {
    let devices = many(census.devices, "published device", "published devices");
    let allocated = many(census.allocated, "allocated device", "allocated devices");
    let pods = many(census.pods, "pod", "pods");
    let namespaces = many(census.namespaces, "namespace", "different namespaces");
    format!(
        "{devices} selected. {allocated} selected. {pods} would be evicted in {namespaces} if the \
         effect was NoExecute. This information will not be updated again. Recreate the \
         DeviceTaintRule to trigger an update."
    )
}

fn many(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
