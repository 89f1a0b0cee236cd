//! The status of a Pod: addresses, the state of each container, the phase and conditions.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container as Spec, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, ContainerUser, HostIP, Pod, PodCondition, PodIP,
    PodSpec, PodStatus, ResourceRequirements, VolumeMount, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::anew;
use super::conditions::{conditions, is_own};
use super::phase::phase;
use super::plan::{Observed, Plan};
use super::resources;
use super::terminated::terminate;
use crate::eviction::REASON;
use crate::rejection::Rejection;
use crate::restart_policy::accompanies;
use crate::runtime::{Container, Evicted, State};

/// How much the containers of a Pod can say together of how they ended, in bytes.
const LAST_WORDS_MAX: usize = 12 * 1024;

/// Why a Pod was disrupted that had to go for another.
const PREEMPTED: &str = "Pod was preempted by Kubelet to accommodate a critical pod.";

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
    /// A Pod that the system needs does.
    Preempted,
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
            Self::Preempted => Some(("Preempting", "Preempted in order to admit critical pod")),
        }
    }
}

/// Whether a Pod has ended for good.
pub(super) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.is_some_and(is_terminal)
}

/// Whether a Pod in this phase stays in it.
fn is_terminal(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
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
    let over = !observed.any_runs();
    // Whose time is up is not ready any more, though it goes on for a while.
    let end = (over || *end == End::DeadlineExceeded).then_some(end);
    let mut status = complete(pod, status, observed, end, now);
    if over {
        terminate(pod, &mut status);
    }
    status
}

/// What is told of the containers.
fn reported(pod: &Pod, observed: &Observed, plan: &Plan, now: Timestamp) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    status.start_time.get_or_insert_with(|| time(now));
    status.observed_generation = pod.metadata.generation;
    let Some(spec) = &pod.spec else { return status };
    let reporting = Reporting {
        pod,
        observed,
        plan,
        creating: creating(spec),
        words_max: LAST_WORDS_MAX / count(spec).max(1),
    };
    let main = spec.containers.iter().map(|container| reporting.of(container));
    status.container_statuses = Some(by_name(main.collect()));
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
        ..reporting.of_named(&Named {
            name: &container.name,
            image: container.image.as_deref(),
            resources: container.resources.as_ref(),
            mounts: container.volume_mounts.as_deref().unwrap_or_default(),
        })
    });
    status.ephemeral_container_statuses = not_empty(by_name(added.collect()));
    status
}

/// Statuses in the order in which a kubelet has all but those of init containers, whatever the order of
/// the containers is.
fn by_name(mut statuses: Vec<ContainerStatus>) -> Vec<ContainerStatus> {
    statuses.sort_by(|one, other| one.name.cmp(&other.name));
    statuses
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
    let before = pod.status.as_ref().and_then(|before| before.phase.as_deref());
    let over = end.is_some() && !observed.any_runs();
    let mut phase = phase(spec, &status, over);
    // What was killed so that all begin anew has not failed, however it ended and whoever still runs.
    if end.is_none() && observed.restarts_all() && matches!(phase, "Failed" | "Succeeded") {
        phase = if before == Some("Running") { "Running" } else { "Pending" };
    }
    if before != Some(phase) {
        // What was said of the phase before is not about this one.
        (status.reason, status.message) = (None, None);
    }
    if let Some((reason, message)) = end.and_then(End::why) {
        phase = "Failed";
        status.reason = Some(reason.into());
        status.message = Some(message.into());
    }
    match end {
        Some(End::Evicted(Evicted { message, disrupted: true })) => {
            disrupt(pod, &mut status, message, now);
        }
        Some(End::Preempted) => disrupt(pod, &mut status, PREEMPTED, now),
        _ => {}
    }
    // What has just ended is told with what it ran with.
    let runs = phase == "Running" || before == Some("Running");
    resources::tell(spec, observed, runs, &mut status);
    status.phase = Some(phase.into());
    status.conditions = Some(conditions(pod, &status, observed, over, &time(now)));
    if is_terminal(phase) && observed.any_runs() && !before.is_some_and(is_terminal) {
        // What a Pod has of its node others must not get as long as anything of it runs.
        let before = pod.status.clone().unwrap_or_default();
        status.phase = before.phase.or_else(|| Some("Pending".into()));
        (status.reason, status.message) = (before.reason, before.message);
    }
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
    pod: &'a Pod,
    observed: &'a Observed,
    plan: &'a Plan,
    /// Why those wait that were not started yet.
    creating: &'static str,
    /// How much each of them can say of how it ended, in bytes.
    words_max: usize,
}

/// A container as its Pod has it, whichever list it is in.
struct Named<'a> {
    name: &'a str,
    image: Option<&'a str>,
    resources: Option<&'a ResourceRequirements>,
    mounts: &'a [VolumeMount],
}

/// How many containers a Pod has.
fn count(spec: &PodSpec) -> usize {
    let init = spec.init_containers.as_ref().map_or(0, Vec::len);
    spec.containers.len() + init + spec.ephemeral_containers.as_ref().map_or(0, Vec::len)
}

/// Why containers wait that were not made yet, whether or not the init containers among them are done.
fn creating(spec: &PodSpec) -> &'static str {
    let init = spec.init_containers.as_ref().is_some_and(|all| !all.is_empty());
    if init { "PodInitializing" } else { "ContainerCreating" }
}

impl Reporting<'_> {
    fn of(&self, spec: &Spec) -> ContainerStatus {
        self.of_named(&Named {
            name: &spec.name,
            image: spec.image.as_deref(),
            resources: spec.resources.as_ref(),
            mounts: spec.volume_mounts.as_deref().unwrap_or_default(),
        })
    }

    fn of_named(&self, spec: &Named<'_>) -> ContainerStatus {
        let name = spec.name;
        let recursively = self.observed.now.reads_only_recursively;
        let mounts = || spec.mounts.iter().map(|mount| mounted(mount, recursively)).collect();
        let base = ContainerStatus {
            name: name.to_owned(),
            image: spec.image.unwrap_or_default().to_owned(),
            started: Some(false),
            volume_mounts: (!spec.mounts.is_empty()).then(mounts),
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
        let allocated = sizes.allocated.containers.get(name).or(spec.resources);
        let allocated = allocated.cloned().unwrap_or_default();
        let actuated = sizes.of_run(name, found.attempt).filter(|_| found.runs()).cloned();
        let base = ContainerStatus {
            allocated_resources: allocated.requests.clone().filter(|list| !list.is_empty()),
            resources: Some(actuated.unwrap_or(allocated)),
            image: found.image.clone(),
            image_id: found.image_id.clone(),
            container_id: Some(found.id.clone()),
            restart_count: found.attempt,
            last_state: self.last_of(found).or(base.last_state),
            user: found.user.clone().map(|linux| ContainerUser { linux: Some(linux) }),
            ..base
        };
        match (&found.state, waiting) {
            (State::Running { started, ready, .. }, _) => {
                let running = ContainerStateRunning { started_at: Some(time(found.started)) };
                let state = ContainerState { running: Some(running), ..ContainerState::default() };
                let started = Some(*started);
                ContainerStatus { ready: *ready, started, state: Some(state), ..base }
            }
            (State::Exited { .. }, waiting) if self.begins_anew(found) => ContainerStatus {
                state: Some(waits(waiting.unwrap_or_else(anew::waiting))),
                last_state: Some(anew::ended(self.terminated(found))),
                restart_count: found.attempt.saturating_add(1),
                ..base
            },
            (State::Exited { .. }, None) => {
                ContainerStatus { state: self.terminated(found), ..base }
            }
            (State::Exited { .. }, Some(waiting)) => ContainerStatus {
                state: Some(waits(waiting)),
                last_state: self.terminated(found),
                ..base
            },
        }
    }

    /// Whether a container is about to be started anew with all others. Until all have ended, people are
    /// told how this one did: an agent that is started meanwhile has to know as well.
    fn begins_anew(&self, found: &Container) -> bool {
        self.observed.anew.includes(found) && !self.observed.restarts_all()
    }

    /// How the container before this one ended.
    fn last_of(&self, found: &Container) -> Option<ContainerState> {
        let last = found.last.as_deref().and_then(|last| self.terminated(last));
        match self.observed.anew.precedes(found) || anew::is_told(self.pod, found) {
            true => Some(anew::ended(last)),
            false => last,
        }
    }

    fn terminated(&self, container: &Container) -> Option<ContainerState> {
        let State::Exited { finished, code, reason, message } = &container.state else {
            return None;
        };
        let heard =
            |message: &String| message[..message.floor_char_boundary(self.words_max)].to_owned();
        let terminated = ContainerStateTerminated {
            exit_code: *code,
            reason: Some(reason.clone()),
            message: message.as_ref().map(heard),
            started_at: Some(time(container.started)),
            finished_at: Some(time(*finished)),
            container_id: Some(container.id.clone()),
            ..ContainerStateTerminated::default()
        };
        Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() })
    }
}

/// How a volume is mounted, and whether what is mounted below one that is only read can be written.
fn mounted(mount: &VolumeMount, recursively: bool) -> VolumeMountStatus {
    let asked = mount.recursive_read_only.as_deref().unwrap_or("Disabled");
    let propagates = mount.mount_propagation.as_deref().is_some_and(|mode| mode != "None");
    // Who wants it and cannot have it is not started.
    let mode = match asked != "Disabled" && recursively && !propagates {
        true => "Enabled",
        false => "Disabled",
    };
    VolumeMountStatus {
        name: mount.name.clone(),
        mount_path: mount.mount_path.clone(),
        read_only: mount.read_only.filter(|only| *only),
        recursive_read_only: (mount.read_only == Some(true)).then(|| mode.to_owned()),
        ..VolumeMountStatus::default()
    }
}

fn waits(waiting: ContainerStateWaiting) -> ContainerState {
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn exit_code(status: &ContainerStatus) -> Option<i32> {
    status.state.as_ref()?.terminated.as_ref().map(|ended| ended.exit_code)
}

/// The status of a Pod that its node does not take: that is all a kubelet has to say of it. What others
/// have said stays.
pub(super) fn rejected(pod: &Pod, rejection: &Rejection, now: &Time) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    let conditions = before.conditions.into_iter().flatten();
    let others: Vec<PodCondition> = conditions.filter(|it| !is_own(&it.type_)).collect();
    PodStatus {
        conditions: Some(others).filter(|others| !others.is_empty()),
        start_time: before.start_time.or_else(|| Some(now.clone())),
        observed_generation: pod.metadata.generation,
        phase: Some("Failed".into()),
        reason: Some(rejection.reason().into()),
        message: Some(format!("Pod was rejected: {rejection}")),
        qos_class: before.qos_class,
        resource_claim_statuses: before.resource_claim_statuses,
        extended_resource_claim_status: before.extended_resource_claim_status,
        ..PodStatus::default()
    }
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

#[cfg(test)]
mod tests;
