//! The conditions of a Pod that its kubelet sets.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use steersman_scheduler::framework::may_restart_all;

use super::plan::Observed;
use super::resize;
use crate::restart_policy::accompanies;
use crate::runtime::Sandbox;

/// The conditions that a kubelet sets, apart from those of a resize.
const OWN: [&str; 6] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "AllContainersRestarting",
];

/// What a condition says.
struct Said {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Said {
    fn yes() -> Self {
        Self { holds: true, reason: None, message: None }
    }

    fn no(reason: &'static str) -> Self {
        Self { holds: false, reason: Some(reason), message: None }
    }
}

/// The conditions of a Pod with this phase and these containers, in a kubelet's order: those of
/// others first, then what is said of a resize, and its own. One whose status stays keeps its time. Of
/// a Pod that has `ended` they may say why it was not ready before.
pub(super) fn conditions(
    pod: &Pod,
    status: &PodStatus,
    observed: &Observed,
    ended: bool,
    now: &Time,
) -> Vec<PodCondition> {
    let default = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&default);
    let ended = ended || is_terminal(status) && !observed.any_runs();
    let containers_ready = containers_ready(spec, status);
    let connected = observed.now.sandbox != Sandbox::Absent;
    let mut own = vec![
        (
            "PodReadyToStartContainers",
            Said { holds: !ended && connected, reason: None, message: None },
        ),
        ("Initialized", initialized(spec, status)),
        ("Ready", ready(spec, status, &containers_ready)),
        ("ContainersReady", containers_ready),
        // Not all have a scheduler that says so.
        ("PodScheduled", Said::yes()),
    ];
    if may_restart_all(spec) {
        own.push(("AllContainersRestarting", restarts_all(status, observed)));
    }
    let old = status.conditions.clone().unwrap_or_default();
    let resizing = if ended { Vec::new() } else { resize::conditions(&observed.sizes, &old, now) };
    let others = old.iter().filter(|condition| !is_own(&condition.type_)).cloned();
    let own = own.iter().map(|(type_, said)| {
        let holds = if said.holds { "True" } else { "False" };
        let same = old.iter().find(|old| old.type_ == *type_ && old.status == holds);
        let since = same.and_then(|old| old.last_transition_time.clone());
        PodCondition {
            type_: (*type_).into(),
            status: holds.into(),
            reason: said.reason.map(str::to_owned),
            message: said.message.clone(),
            last_transition_time: since.or_else(|| Some(now.clone())),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        }
    });
    others.chain(resizing).chain(own).collect()
}

/// Whether nobody but a kubelet says so of a Pod.
pub(super) fn is_own(type_: &str) -> bool {
    OWN.contains(&type_) || resize::is_own_condition(type_)
}

fn is_terminal(status: &PodStatus) -> bool {
    matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

fn initialized(spec: &PodSpec, status: &PodStatus) -> Said {
    let statuses = status.init_container_statuses.as_ref();
    let done = |name: &str, stays: bool| {
        let found = statuses.and_then(|all| all.iter().find(|status| status.name == name));
        found.is_some_and(|found| if stays { found.started == Some(true) } else { found.ready })
    };
    let init = spec.init_containers.iter().flatten();
    let incomplete: Vec<&str> = init
        .filter(|container| !done(&container.name, accompanies(container)))
        .map(|container| container.name.as_str())
        .collect();
    let begun = status.container_statuses.iter().flatten().any(has_begun);
    if status.phase.as_deref() == Some("Succeeded") {
        return Said { reason: Some("PodCompleted"), ..Said::yes() };
    }
    let mut conditions = status.conditions.iter().flatten();
    let before = conditions.any(|old| old.type_ == "Initialized" && old.status == "True");
    // Once it was initialized it stays that, even if its init containers run again.
    if begun || before || incomplete.is_empty() {
        return Said::yes();
    }
    let message = format!("containers with incomplete status: [{}]", incomplete.join(" "));
    Said { message: Some(message), ..Said::no("ContainersNotInitialized") }
}

fn restarts_all(status: &PodStatus, observed: &Observed) -> Said {
    match status.phase.as_deref() {
        Some("Succeeded") => return Said::no("PodCompleted"),
        Some("Failed") => return Said::no("PodFailed"),
        _ => {}
    }
    if !observed.restarts_all() {
        return Said { holds: false, reason: None, message: None };
    }
    let message = Some("container exited with restart policy rule".into());
    Said { reason: Some("RestartAllContainersStarted"), message, ..Said::yes() }
}

/// Whether a container was ever started.
fn has_begun(status: &ContainerStatus) -> bool {
    let begun = |state: &k8s_openapi::api::core::v1::ContainerState| {
        state.running.is_some() || state.terminated.is_some()
    };
    status.state.iter().chain(&status.last_state).any(begun)
}

fn containers_ready(spec: &PodSpec, status: &PodStatus) -> Said {
    match status.phase.as_deref() {
        Some("Succeeded") => return Said::no("PodCompleted"),
        Some("Failed") => return Said::no("PodFailed"),
        _ => {}
    }
    let statuses = status.init_container_statuses.iter().chain(&status.container_statuses);
    let statuses: Vec<&ContainerStatus> = statuses.flatten().collect();
    let is_ready = |name: &str| statuses.iter().any(|status| status.name == name && status.ready);
    let companions = spec.init_containers.iter().flatten().filter(|c| accompanies(c));
    let names = companions.chain(&spec.containers).map(|container| container.name.as_str());
    let unready: Vec<&str> = names.filter(|name| !is_ready(name)).collect();
    if unready.is_empty() {
        return Said::yes();
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    Said { message: Some(message), ..Said::no("ContainersNotReady") }
}

/// Ready when all containers are, and all that others were to say.
fn ready(spec: &PodSpec, status: &PodStatus, containers: &Said) -> Said {
    if !containers.holds {
        let Said { holds, reason, message } = containers;
        return Said { holds: *holds, reason: *reason, message: message.clone() };
    }
    let of = |type_: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.find(|condition| condition.type_ == type_)
    };
    let gates = spec.readiness_gates.iter().flatten().map(|gate| &gate.condition_type);
    let missing: Vec<String> = gates
        .filter_map(|gate| match of(gate) {
            None => Some(format!(
                "corresponding condition of pod readiness gate {gate:?} does not exist."
            )),
            Some(it) if it.status == "True" => None,
            Some(it) => {
                let found = &it.status;
                Some(format!(
                    "the status of pod readiness gate {gate:?} is not \"True\", but {found}"
                ))
            }
        })
        .collect();
    if missing.is_empty() {
        return Said::yes();
    }
    Said { message: Some(missing.join(", ")), ..Said::no("ReadinessGatesNotReady") }
}
