//! The status of a Pod that runs, or that its node cannot run.

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus,
    HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::addresses::OutOfPods;
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

/// Whether a Pod has ended for good.
pub(super) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
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
        let of = |container: &Container, state| container_status(container, around, state);
        let runs = |container: &Container| of(container, started(&since));
        status.container_statuses = Some(spec.containers.iter().map(runs).collect());
        let init = spec.init_containers.iter().flatten().map(|container| {
            let stays = container.restart_policy.as_deref() == Some("Always");
            of(container, if stays { started(&since) } else { completed(&since) })
        });
        status.init_container_statuses =
            Some(init.collect()).filter(|all: &Vec<_>| !all.is_empty());
    }
    status
}

/// The status of a Pod that its node has no room for.
pub(super) fn rejected(pod: &Pod, full: &OutOfPods, now: &Time) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    status.start_time.get_or_insert_with(|| now.clone());
    status.observed_generation = pod.metadata.generation;
    status.phase = Some("Failed".into());
    status.reason = Some("OutOfpods".into());
    status.message = Some(format!("Pod was rejected: {full}"));
    status
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

fn container_status(
    container: &Container,
    around: &Surroundings,
    state: ContainerState,
) -> ContainerStatus {
    let found = around.containers.iter().find(|started| started.name == container.name);
    let runs = state.running.is_some();
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
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
