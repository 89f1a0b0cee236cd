//! The status of a Deployment: counts over its ReplicaSets, and conditions.
//!
//! A condition's transition time changes with its status, its update time with its reason; the
//! progress deadline is measured from the latter.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::plan::Rollout;
use super::rolling::{self, desired, max_unavailable, total};

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";
/// The reason of a rollout that has arrived.
const ARRIVED: &str = "NewReplicaSetAvailable";
/// The reason of a rollout that took too long.
const TOO_LATE: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";
/// The reason of a rollout whose ReplicaSet cannot be created.
pub(super) const REFUSED: &str = "ReplicaSetCreateError";

/// A status, and when it must be looked at again even if nothing happens.
#[derive(Debug)]
pub(super) struct Report {
    /// The status.
    pub(super) status: DeploymentStatus,
    /// When the progress deadline will have passed.
    pub(super) deadline_in: Option<Duration>,
}

/// What a reconcile did about the new ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing that needs mention.
    None,
    /// It created the ReplicaSet with this name.
    Created(String),
    /// It could not create it, because of this.
    Refused(String),
}

/// The status of a rollout.
pub(super) fn report(rollout: &Rollout, progress: &Progress, now: Timestamp) -> Report {
    let deployment = &*rollout.deployment;
    let mut status = counts(rollout);
    let mut conditions = Conditions { all: current_conditions(deployment), now };
    let deadline = deadline(deployment);
    if deadline.is_some() {
        announce(rollout, progress, &mut conditions);
    }
    conditions.set(availability(deployment, &status));
    let deadline_in = match deadline {
        Some(deadline) => progressing(rollout, progress, &status, deadline, &mut conditions),
        None => {
            conditions.remove(PROGRESSING);
            None
        }
    };
    match failure(rollout) {
        Some(failure) => conditions.adopt(failure),
        None => conditions.remove(REPLICA_FAILURE),
    }
    status.conditions = Some(conditions.all);
    Report { status, deadline_in }
}

/// Whether every Pod is of the new template, available, and wanted.
pub(super) fn is_complete(rollout: &Rollout) -> bool {
    arrived(&rollout.deployment, &counts(rollout))
}

fn arrived(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let desired = desired(deployment);
    let counts = [status.updated_replicas, status.replicas, status.available_replicas];
    counts.iter().all(|count| count.unwrap_or(0) == desired)
}

fn counts(rollout: &Rollout) -> DeploymentStatus {
    let sum = |count: fn(&ReplicaSetStatus) -> i32| -> i32 {
        rolling::sum(rollout.all().filter_map(|set| set.status.as_ref()).map(count))
    };
    let available = sum(|status| status.available_replicas.unwrap_or(0));
    let updated = rollout.new.as_ref().and_then(|new| new.status.as_ref());
    let updated = updated.map_or(0, |status| status.replicas);
    let nonzero = |count: i32| (count != 0).then_some(count); // Kubernetes leaves zeros out
    let collisions = rollout.deployment.status.as_ref().and_then(|status| status.collision_count);
    DeploymentStatus {
        replicas: nonzero(sum(|status| status.replicas)),
        updated_replicas: nonzero(updated),
        ready_replicas: nonzero(sum(|status| status.ready_replicas.unwrap_or(0))),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero(total(rollout.all()).saturating_sub(available).max(0)),
        terminating_replicas: Some(sum(|status| status.terminating_replicas.unwrap_or(0))),
        observed_generation: rollout.deployment.metadata.generation,
        collision_count: collisions,
        conditions: None,
    }
}

fn availability(deployment: &Deployment, status: &DeploymentStatus) -> DeploymentCondition {
    let enough = desired(deployment) - max_unavailable(deployment);
    if status.available_replicas.unwrap_or(0) >= enough {
        let message = "Deployment has minimum availability.";
        condition(AVAILABLE, "True", "MinimumReplicasAvailable", message)
    } else {
        let message = "Deployment does not have minimum availability.";
        condition(AVAILABLE, "False", "MinimumReplicasUnavailable", message)
    }
}

/// The first ReplicaSet's failure to create or delete Pods, since when it tells of it.
fn failure(rollout: &Rollout) -> Option<DeploymentCondition> {
    let failing = |set: &Arc<ReplicaSet>| {
        let conditions = set.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|c| c.type_ == REPLICA_FAILURE && c.status == "True").cloned()
    };
    let failure = rollout.all().find_map(failing)?;
    Some(DeploymentCondition {
        type_: REPLICA_FAILURE.into(),
        status: failure.status,
        reason: failure.reason,
        message: failure.message,
        last_update_time: failure.last_transition_time.clone(),
        last_transition_time: failure.last_transition_time,
    })
}

/// Updates the `Progressing` condition; returns when its deadline will have passed.
fn progressing(
    rollout: &Rollout,
    progress: &Progress,
    status: &DeploymentStatus,
    deadline: SignedDuration,
    conditions: &mut Conditions,
) -> Option<Duration> {
    if matches!(progress, Progress::Refused(_)) {
        return None;
    }
    let paused = rollout.deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true);
    let settled = conditions.reason(PROGRESSING) == Some(ARRIVED);
    if paused || (settled && status.replicas == status.updated_replicas) {
        return None;
    }
    let name = subject(rollout);
    if rollout.new.is_some() && arrived(&rollout.deployment, status) {
        let message = format!("{name} has successfully progressed.");
        conditions.set(condition(PROGRESSING, "True", ARRIVED, &message));
        return None;
    }
    if has_progressed(rollout.deployment.status.as_ref(), status) {
        let message = format!("{name} is progressing.");
        conditions.renew(condition(PROGRESSING, "True", "ReplicaSetUpdated", &message));
    }
    if matches!(conditions.reason(PROGRESSING), None | Some(TOO_LATE | ARRIVED)) {
        return None;
    }
    let left = deadline - conditions.since_update(PROGRESSING)?;
    if let Ok(left) = Duration::try_from(left) {
        return Some(left + Duration::from_secs(1));
    }
    let message = format!("{name} has timed out progressing.");
    conditions.set(condition(PROGRESSING, "False", TOO_LATE, &message));
    None
}

/// Says that the new ReplicaSet was created or found, and that the Deployment was paused or
/// resumed.
fn announce(rollout: &Rollout, progress: &Progress, conditions: &mut Conditions) {
    let paused = rollout.deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true);
    let reason = conditions.reason(PROGRESSING).map(str::to_owned);
    match (progress, reason.as_deref()) {
        (Progress::Created(name), _) => {
            let message = format!("Created new replica set \"{name}\"");
            conditions.set(condition(PROGRESSING, "True", "NewReplicaSetCreated", &message));
        }
        (Progress::Refused(message), _) => {
            conditions.set(condition(PROGRESSING, "False", REFUSED, message));
        }
        (Progress::None, Some(TOO_LATE)) => {}
        (Progress::None, Some(PAUSED)) if !paused => {
            let message = "Deployment is resumed";
            conditions.set(condition(PROGRESSING, "Unknown", "DeploymentResumed", message));
        }
        (Progress::None, _) if paused => {
            conditions.set(condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused"));
        }
        (Progress::None, None) if rollout.new.is_some() => {
            let name = rollout.new.as_ref().and_then(|new| new.metadata.name.as_deref());
            let message = format!("Found new replica set \"{}\"", name.unwrap_or_default());
            conditions.set(condition(PROGRESSING, "True", "FoundNewReplicaSet", &message));
        }
        (Progress::None, _) => {}
    }
}

/// Whether anything moved in the right direction since the last status.
fn has_progressed(before: Option<&DeploymentStatus>, now: &DeploymentStatus) -> bool {
    let before = before.cloned().unwrap_or_default();
    let outdated = |s: &DeploymentStatus| s.replicas.unwrap_or(0) - s.updated_replicas.unwrap_or(0);
    now.updated_replicas.unwrap_or(0) > before.updated_replicas.unwrap_or(0)
        || outdated(now) < outdated(&before)
        || now.ready_replicas.unwrap_or(0) > before.ready_replicas.unwrap_or(0)
        || now.available_replicas.unwrap_or(0) > before.available_replicas.unwrap_or(0)
}

/// What the messages speak of.
fn subject(rollout: &Rollout) -> String {
    match rollout.new.as_ref().and_then(|new| new.metadata.name.as_deref()) {
        Some(name) => format!("ReplicaSet \"{name}\""),
        None => {
            let name = rollout.deployment.metadata.name.as_deref().unwrap_or_default();
            format!("Deployment \"{name}\"")
        }
    }
}

/// How long a rollout may stand still; `None` if for ever.
fn deadline(deployment: &Deployment) -> Option<SignedDuration> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds.unwrap_or(600);
    (seconds != i32::MAX).then(|| SignedDuration::from_secs(seconds.into()))
}

fn current_conditions(deployment: &Deployment) -> Vec<DeploymentCondition> {
    let status = deployment.status.as_ref();
    status.and_then(|status| status.conditions.clone()).unwrap_or_default()
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_transition_time: None,
        last_update_time: None,
    }
}

/// Conditions that know what time it is.
struct Conditions {
    all: Vec<DeploymentCondition>,
    now: Timestamp,
}

impl Conditions {
    fn get(&self, type_: &str) -> Option<&DeploymentCondition> {
        self.all.iter().find(|condition| condition.type_ == type_)
    }

    fn reason(&self, type_: &str) -> Option<&str> {
        self.get(type_)?.reason.as_deref()
    }

    /// How long ago a condition was last updated.
    fn since_update(&self, type_: &str) -> Option<SignedDuration> {
        let updated = self.get(type_)?.last_update_time.as_ref()?.0;
        Some(self.now.duration_since(updated))
    }

    /// Sets a condition, unless it already has this status for this reason.
    fn set(&mut self, condition: DeploymentCondition) {
        if !self.says(&condition) {
            self.renew(condition);
        }
    }

    /// Whether a condition already has this status for this reason.
    fn says(&self, condition: &DeploymentCondition) -> bool {
        self.get(&condition.type_).is_some_and(|current| {
            current.status == condition.status && current.reason == condition.reason
        })
    }

    /// Sets a condition and its update time.
    fn renew(&mut self, mut condition: DeploymentCondition) {
        let now = Time(Timestamp::from_second(self.now.as_second()).unwrap_or(self.now));
        condition.last_transition_time = Some(now.clone());
        condition.last_update_time = Some(now);
        self.replace(condition);
    }

    /// Sets a condition that somebody else has, with its times, unless it is said already.
    fn adopt(&mut self, condition: DeploymentCondition) {
        if !self.says(&condition) {
            self.replace(condition);
        }
    }

    /// Puts a condition last. The transition time stays if the status does.
    fn replace(&mut self, mut condition: DeploymentCondition) {
        let current = self.get(&condition.type_).filter(|c| c.status == condition.status);
        let since = current.and_then(|current| current.last_transition_time.clone());
        condition.last_transition_time = since.or(condition.last_transition_time);
        self.remove(&condition.type_);
        self.all.push(condition);
    }

    fn remove(&mut self, type_: &str) {
        self.all.retain(|condition| condition.type_ != type_);
    }
}
