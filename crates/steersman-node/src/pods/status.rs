//! The status of a Pod that runs.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus, HostIP, Pod,
    PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::runtime::StartedContainer;

/// The conditions that a kubelet reports for a Pod that runs.
const CONDITIONS: [&str; 4] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];

/// What a Pod finds itself in.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// The Pod's address.
    pub(super) pod_address: String,
    /// Its node's address.
    pub(super) host_address: String,
    /// What the runtime started for it.
    pub(super) containers: Vec<StartedContainer>,
}

/// The status of a Pod whose containers all run. What others wrote into it stays.
pub(super) fn running(pod: &Pod, around: &Surroundings, now: &Time) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    let since = status.start_time.get_or_insert_with(|| now.clone()).clone();
    status.phase = Some("Running".into());
    status.observed_generation = pod.metadata.generation;
    status.host_ip = Some(around.host_address.clone());
    status.host_ips = Some(vec![HostIP { ip: around.host_address.clone() }]);
    status.pod_ip = Some(around.pod_address.clone());
    status.pod_ips = Some(vec![PodIP { ip: around.pod_address.clone() }]);
    report(status.conditions.get_or_insert_default(), pod.metadata.generation, now);
    if let Some(spec) = &pod.spec {
        let of = |name: &str, image: &Option<String>, state| {
            container_status(name, image.as_deref(), around, state)
        };
        let main = spec.containers.iter().map(|c| of(&c.name, &c.image, started(&since)));
        status.container_statuses = Some(main.collect());
        let init = spec.init_containers.iter().flatten().map(|container| {
            let stays = container.restart_policy.as_deref() == Some("Always");
            let state = if stays { started(&since) } else { completed(&since) };
            of(&container.name, &container.image, state)
        });
        status.init_container_statuses = not_empty(init.collect());
        let known = status.ephemeral_container_statuses.take().unwrap_or_default();
        let added = spec.ephemeral_containers.iter().flatten().map(|container| {
            let known = known.iter().find(|status| status.name == container.name).cloned();
            known.unwrap_or_else(|| {
                let added = of(&container.name, &container.image, started(now));
                ContainerStatus { ready: false, started: None, ..added } // they have no readiness
            })
        });
        status.ephemeral_container_statuses = not_empty(added.collect());
    }
    status
}

/// The status of a Pod that still runs, although it has been told to end.
pub(super) fn observed(pod: &Pod) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    status.observed_generation = pod.metadata.generation;
    for condition in status.conditions.iter_mut().flatten() {
        if CONDITIONS.contains(&condition.type_.as_str()) {
            condition.observed_generation = pod.metadata.generation;
        }
    }
    status
}

/// Whether a Pod's status is about its latest generation.
pub(super) fn is_observed(pod: &Pod) -> bool {
    let observed = pod.status.as_ref().and_then(|status| status.observed_generation);
    observed == pod.metadata.generation
}

/// How long a Pod with this status may still be active, if that is limited.
pub(super) fn time_left(pod: &Pod, status: &PodStatus, now: Timestamp) -> Option<Duration> {
    let allowed = pod.spec.as_ref()?.active_deadline_seconds?;
    let end = status.start_time.as_ref()?.0 + SignedDuration::from_secs(allowed);
    Some(Duration::try_from(end.duration_since(now)).unwrap_or_default())
}

/// Sets the conditions of a Pod that runs; those that were true before keep their time.
fn report(conditions: &mut Vec<PodCondition>, generation: Option<i64>, now: &Time) {
    for type_ in CONDITIONS {
        let same = conditions.iter().find(|c| c.type_ == type_ && c.status == "True");
        let since = same.and_then(|condition| condition.last_transition_time.clone());
        conditions.retain(|condition| condition.type_ != type_);
        conditions.push(PodCondition {
            type_: type_.into(),
            status: "True".into(),
            last_transition_time: since.or_else(|| Some(now.clone())),
            observed_generation: generation,
            ..PodCondition::default()
        });
    }
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_)); // the same order every time
}

fn not_empty(statuses: Vec<ContainerStatus>) -> Option<Vec<ContainerStatus>> {
    (!statuses.is_empty()).then_some(statuses)
}

fn container_status(
    name: &str,
    image: Option<&str>,
    around: &Surroundings,
    state: ContainerState,
) -> ContainerStatus {
    let found = around.containers.iter().find(|started| started.name == name);
    let runs = state.running.is_some();
    ContainerStatus {
        name: name.to_owned(),
        image: image.unwrap_or_default().to_owned(),
        image_id: found.map(|started| started.image_id.clone()).unwrap_or_default(),
        container_id: found.map(|started| started.id.clone()),
        ready: true, // of an init container this says that it is done
        started: Some(runs),
        restart_count: 0,
        state: Some(state),
        ..ContainerStatus::default()
    }
}

fn started(at: &Time) -> ContainerState {
    let running = ContainerStateRunning { started_at: Some(at.clone()) };
    ContainerState { running: Some(running), ..ContainerState::default() }
}

fn completed(at: &Time) -> ContainerState {
    let terminated = ContainerStateTerminated {
        exit_code: 0,
        reason: Some("Completed".into()),
        started_at: Some(at.clone()),
        finished_at: Some(at.clone()),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}
