//! The status of a Pod: addresses, the state of each container, the phase and conditions.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container as Spec, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus,
    ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::conditions::conditions;
use super::phase::phase;
use super::plan::{Observed, Plan};
use crate::addresses::Rejection;
use crate::eviction::REASON;
use crate::restart_policy::accompanies;
use crate::runtime::{Container, Evicted, Sandbox, State};

/// What a Pod finds itself in.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// The Pod's addresses, the main one first.
    pub(super) pod_addresses: Vec<String>,
    /// Those of its node.
    pub(super) host_addresses: Vec<String>,
}

/// Why a Pod is over, whatever its containers would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was told to end.
    Told,
    /// It has run for as long as it may.
    DeadlineExceeded,
    /// Its machine needs what it has.
    Evicted(Evicted),
}

impl End {
    /// Reason and message of the Pod's status.
    pub(super) fn why(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Told => None,
            Self::DeadlineExceeded => {
                let message = "Pod was active on the node longer than the specified deadline";
                Some(("DeadlineExceeded", message))
            }
            Self::Evicted(why) => Some((REASON, &why.message)),
        }
    }
}

/// Whether a Pod has ended for good.
pub(super) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether a node has begun to run a Pod.
pub(super) fn has_started(pod: &Pod) -> bool {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    containers.is_some_and(|all| !all.is_empty())
}

/// The status of a Pod that is run by its node. What others wrote into it stays.
pub(super) fn running(
    pod: &Pod,
    around: &Surroundings,
    observed: &Observed,
    plan: &Plan,
    now: Timestamp,
) -> PodStatus {
    let mut status = reported(pod, observed, plan, now);
    let (own, host) = (around.pod_addresses.iter().cloned(), around.host_addresses.iter().cloned());
    status.host_ip = around.host_addresses.first().cloned();
    status.host_ips = Some(host.map(|ip| HostIP { ip }).collect());
    if let Some(first) = around.pod_addresses.first() {
        status.pod_ip = Some(first.clone());
        status.pod_ips = Some(own.map(|ip| PodIP { ip }).collect());
    }
    complete(pod, status, observed, None, now)
}

/// The status of a Pod that is being ended, which it has been once nothing runs any more.
pub(super) fn ending(pod: &Pod, observed: &Observed, end: &End, now: Timestamp) -> PodStatus {
    let status = reported(pod, observed, &Plan::default(), now);
    let end = (!observed.any_runs()).then_some(end);
    complete(pod, status, observed, end, now)
}

/// What is told of the containers.
fn reported(pod: &Pod, observed: &Observed, plan: &Plan, now: Timestamp) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    status.start_time.get_or_insert_with(|| time(now));
    status.observed_generation = pod.metadata.generation;
    let Some(spec) = &pod.spec else { return status };
    let reporting = Reporting { observed, plan, creating: creating(spec, observed) };
    let main = spec.containers.iter().map(|container| reporting.of(container));
    status.container_statuses = Some(main.collect());
    let init = spec.init_containers.iter().flatten().map(|container| {
        let done = |status: &ContainerStatus| exit_code(status) == Some(0);
        let found = reporting.of(container);
        // Of an init container this says that it is done.
        let ready = if accompanies(container) { found.ready } else { done(&found) };
        ContainerStatus { ready, ..found }
    });
    status.init_container_statuses = not_empty(init.collect());
    let added = spec.ephemeral_containers.iter().flatten();
    // They have no readiness.
    let added = added.map(|container| ContainerStatus {
        ready: false,
        started: None,
        ..reporting.of_named(
            &container.name,
            container.image.as_deref(),
            container.resources.as_ref(),
        )
    });
    status.ephemeral_container_statuses = not_empty(added.collect());
    let whole = &observed.sizes.allocated.whole;
    status.allocated_resources = whole.as_ref().and_then(|whole| whole.requests.clone());
    status.resources = whole.as_ref().and(observed.sizes.actuated.whole.clone());
    status
}

/// Adds what follows from the rest.
fn complete(
    pod: &Pod,
    mut status: PodStatus,
    observed: &Observed,
    end: Option<&End>,
    now: Timestamp,
) -> PodStatus {
    let Some(spec) = &pod.spec else { return status };
    let mut phase = phase(spec, &status, end.is_some());
    if let Some((reason, message)) = end.and_then(End::why) {
        phase = "Failed";
        status.reason = Some(reason.into());
        status.message = Some(message.into());
    }
    if let Some(End::Evicted(Evicted { message, disrupted: true })) = end {
        disrupt(pod, &mut status, message, now);
    }
    status.phase = Some(phase.into());
    let connected = observed.now.sandbox != Sandbox::Absent;
    status.conditions = Some(conditions(pod, &status, &observed.sizes, connected, &time(now)));
    status
}

/// Says that a Pod has not ended by itself.
fn disrupt(pod: &Pod, status: &mut PodStatus, message: &str, now: Timestamp) {
    const TYPE: &str = "DisruptionTarget";
    let conditions = status.conditions.get_or_insert_default();
    let same = conditions.iter().find(|old| old.type_ == TYPE && old.status == "True");
    let since = same.and_then(|old| old.last_transition_time.clone());
    conditions.retain(|old| old.type_ != TYPE);
    conditions.push(PodCondition {
        type_: TYPE.into(),
        status: "True".into(),
        reason: Some("TerminationByKubelet".into()),
        message: Some(message.to_owned()),
        last_transition_time: since.or_else(|| Some(time(now))),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    });
}

/// How containers are told of.
struct Reporting<'a> {
    observed: &'a Observed,
    plan: &'a Plan,
    /// Why those wait that were not started yet.
    creating: &'static str,
}

/// Why containers wait for which it is too early.
fn creating(spec: &PodSpec, observed: &Observed) -> &'static str {
    let init = spec.init_containers.as_ref().is_some_and(|all| !all.is_empty());
    let begun = spec.containers.iter().any(|container| observed.of(&container.name).is_some());
    if init && !begun { "PodInitializing" } else { "ContainerCreating" }
}

impl Reporting<'_> {
    fn of(&self, spec: &Spec) -> ContainerStatus {
        self.of_named(&spec.name, spec.image.as_deref(), spec.resources.as_ref())
    }

    fn of_named(
        &self,
        name: &str,
        image: Option<&str>,
        wanted: Option<&ResourceRequirements>,
    ) -> ContainerStatus {
        let base = ContainerStatus {
            name: name.to_owned(),
            image: image.unwrap_or_default().to_owned(),
            started: Some(false),
            // The server says so of what nothing is said of: leaving it out would be a change.
            last_state: Some(ContainerState::default()),
            ..ContainerStatus::default()
        };
        let waiting = self.plan.waiting.get(name).map(|waiting| ContainerStateWaiting {
            reason: Some(waiting.reason.into()),
            message: Some(waiting.message.clone()).filter(|message| !message.is_empty()),
        });
        let Some(found) = self.observed.of(name) else {
            let creating =
                || ContainerStateWaiting { reason: Some(self.creating.into()), message: None };
            let state = waits(waiting.unwrap_or_else(creating));
            return ContainerStatus { state: Some(state), ..base };
        };
        // Of what does not run this is what it would have.
        let sizes = &self.observed.sizes;
        let allocated = sizes.allocated.containers.get(name).or(wanted);
        let allocated = allocated.cloned().unwrap_or_default();
        let actuated = sizes.of_run(name, found.attempt).filter(|_| found.runs()).cloned();
        let base = ContainerStatus {
            allocated_resources: allocated.requests.clone().filter(|list| !list.is_empty()),
            resources: Some(actuated.unwrap_or(allocated)),
            image_id: found.image_id.clone(),
            container_id: Some(found.id.clone()),
            restart_count: found.attempt,
            last_state: found.last.as_deref().and_then(terminated).or(base.last_state),
            ..base
        };
        match (&found.state, waiting) {
            (State::Running { started, ready, .. }, _) => {
                let running = ContainerStateRunning { started_at: Some(time(found.started)) };
                let state = ContainerState { running: Some(running), ..ContainerState::default() };
                let started = Some(*started);
                ContainerStatus { ready: *ready, started, state: Some(state), ..base }
            }
            (State::Exited { .. }, None) => ContainerStatus { state: terminated(found), ..base },
            (State::Exited { .. }, Some(waiting)) => ContainerStatus {
                state: Some(waits(waiting)),
                last_state: terminated(found),
                ..base
            },
        }
    }
}

fn waits(waiting: ContainerStateWaiting) -> ContainerState {
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn terminated(container: &Container) -> Option<ContainerState> {
    let State::Exited { finished, code, reason, message } = &container.state else {
        return None;
    };
    let terminated = ContainerStateTerminated {
        exit_code: *code,
        reason: Some(reason.clone()),
        message: message.clone(),
        started_at: Some(time(container.started)),
        finished_at: Some(time(*finished)),
        container_id: Some(container.id.clone()),
        ..ContainerStateTerminated::default()
    };
    Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() })
}

fn exit_code(status: &ContainerStatus) -> Option<i32> {
    status.state.as_ref()?.terminated.as_ref().map(|ended| ended.exit_code)
}

/// The status of a Pod that its node does not take.
pub(super) fn rejected(pod: &Pod, rejection: &Rejection, now: &Time) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    status.start_time.get_or_insert_with(|| now.clone());
    status.observed_generation = pod.metadata.generation;
    status.phase = Some("Failed".into());
    status.reason = Some(rejection.reason().into());
    status.message = Some(format!("Pod was rejected: {rejection}"));
    status
}

/// How long a Pod may still be active, if that is limited.
pub(super) fn time_left(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let allowed = SignedDuration::from_secs(pod.spec.as_ref()?.active_deadline_seconds?);
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    let end = started.map_or(now, |time| time.0).checked_add(allowed).ok()?;
    Some(Duration::try_from(end.duration_since(now)).unwrap_or_default())
}

fn not_empty(statuses: Vec<ContainerStatus>) -> Option<Vec<ContainerStatus>> {
    (!statuses.is_empty()).then_some(statuses)
}

/// A moment as objects carry it, to the second.
fn time(moment: Timestamp) -> Time {
    Time(Timestamp::from_second(moment.as_second()).unwrap_or(Timestamp::UNIX_EPOCH))
}
