//! What the runtime has of a Pod.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LinuxContainerUser as Who, Pod};

use super::labels::{self, CONTAINER_NAME, POD_UID};
use super::moments::Known;
use super::starting::Starting;
use super::{Shared, last_words, locked, probing, uid_of};
use crate::cri::CriError;
use crate::cri::wire::container::{
    Container as Listed, ContainerState, ContainerStatus, LinuxContainerUser,
};
use crate::cri::wire::sandbox::{PodSandbox, PodSandboxState};
use crate::restart_policy::restarts;
use crate::runtime::{Container, Observation, Sandbox, State};

/// The code of what ended nobody knows how.
const LOST: i32 = 137;

/// The parts of a Pod as the runtime lists them.
pub(super) struct Parts {
    /// The newest first.
    pub(super) sandboxes: Vec<PodSandbox>,
    /// The newest first.
    pub(super) containers: Vec<Listed>,
}

impl Parts {
    /// Those of the Pod with this uid.
    pub(super) async fn of(shared: &Shared, uid: &str) -> Result<Self, CriError> {
        let label = Some((POD_UID, uid));
        let cri = &shared.cri;
        let (mut sandboxes, mut containers) =
            futures::try_join!(cri.sandboxes(label), cri.containers(label))?;
        // A runtime that does not understand the question may tell of others.
        let own = |labels: &HashMap<String, String>| labels::uid(labels) == Some(uid);
        sandboxes.retain(|one| own(&one.labels));
        containers.retain(|one| own(&one.labels));
        let attempt = |sandbox: &PodSandbox| sandbox.metadata.as_ref().map_or(0, |m| m.attempt);
        sandboxes.sort_by_key(|sandbox| std::cmp::Reverse((attempt(sandbox), sandbox.created_at)));
        containers.sort_by_key(|one| std::cmp::Reverse((attempt_of(one), one.created_at)));
        Ok(Self { sandboxes, containers })
    }

    /// The same with one sandbox that is ready at most: what is in the others is taken away. They were
    /// made by calls of which nobody heard that they had come to an end.
    async fn with_one_sandbox(mut self, shared: &Shared) -> Result<Self, CriError> {
        let ready = |one: &&PodSandbox| one.state == i32::from(PodSandboxState::Ready);
        let all: Vec<String> =
            self.sandboxes.iter().filter(ready).map(|it| it.id.clone()).collect();
        for surplus in all.iter().skip(1) {
            tracing::warn!(
                sandbox = surplus,
                "a Pod has several sandboxes; removing the older one"
            );
            shared.cri.stop_sandbox(surplus).await?;
            shared.cri.remove_sandbox(surplus).await?;
            self.sandboxes.retain(|one| one.id != *surplus);
            self.containers.retain(|one| one.pod_sandbox_id != *surplus);
        }
        Ok(self)
    }

    /// The sandbox that containers are started in.
    pub(super) fn current(&self) -> Option<&PodSandbox> {
        let newest = self.sandboxes.first()?;
        (newest.state == i32::from(PodSandboxState::Ready)).then_some(newest)
    }

    /// The containers of this name that were started, the newest first.
    pub(super) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Listed> {
        let made = |one: &&Listed| one.state != i32::from(ContainerState::Created);
        self.all_named(name).filter(made)
    }

    /// The same, and those that were only made.
    pub(super) fn all_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Listed> {
        self.containers.iter().filter(move |one| name_of(one) == name)
    }
}

pub(super) fn name_of(container: &Listed) -> &str {
    container.labels.get(CONTAINER_NAME).map_or("", String::as_str)
}

pub(super) fn attempt_of(container: &Listed) -> i32 {
    let attempt = container.metadata.as_ref().map_or(0, |metadata| metadata.attempt);
    i32::try_from(attempt).unwrap_or(i32::MAX)
}

pub(super) fn runs(container: &Listed) -> bool {
    container.state == i32::from(ContainerState::Running)
}

/// What there is of a Pod.
pub(super) async fn observe(shared: &Arc<Shared>, pod: &Pod) -> Result<Observation, CriError> {
    let parts = Parts::of(shared, uid_of(pod)).await?.with_one_sandbox(shared).await?;
    let current = parts.current();
    let sandbox = match current {
        Some(current) => Sandbox::Ready(addresses(shared, &current.id).await?),
        None => Sandbox::Absent,
    };
    let mut containers = Vec::new();
    for name in names(pod) {
        let mut named = parts.named(name);
        let mut found = None;
        for one in named.by_ref() {
            if let Some(container) = container(shared, pod, one).await? {
                found = Some((one, container));
                break;
            }
        }
        let Some((newest, mut container)) = found else { continue };
        container.outdated = current.is_none_or(|current| current.id != newest.pod_sandbox_id);
        let address = match &sandbox {
            Sandbox::Ready(own) if !own.is_empty() => &own[0],
            _ => shared.addresses.first().map_or("", String::as_str),
        };
        probing::judge(shared, pod, address, &mut container, |code| again(pod, name, code));
        if let Some(before) = named.next() {
            container.last = self::container(shared, pod, before).await?.map(Box::new);
        }
        containers.push(container);
    }
    let handler = current.map_or_else(|| class(pod), |it| Some(it.runtime_handler.as_str()));
    let said = shared.cri.said();
    Ok(Observation {
        containers,
        starting: shared.pulls.under_way(uid_of(pod)),
        sandbox,
        reads_only_recursively: handler.is_some_and(|it| said.borrow().reads_only_recursively(it)),
    })
}

/// In which way a Pod without a sandbox is run, if that can be told: what a class means is looked up only
/// for a sandbox.
fn class(pod: &Pod) -> Option<&str> {
    let class = pod.spec.as_ref().and_then(|spec| spec.runtime_class_name.as_deref());
    class.is_none_or(str::is_empty).then_some("")
}

/// The names of all containers, in the order in which they are in the Pod.
fn names(pod: &Pod) -> Vec<&str> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let added = spec.ephemeral_containers.iter().flatten();
    all.map(|one| one.name.as_str()).chain(added.map(|one| one.name.as_str())).collect()
}

/// The addresses of a sandbox, which stay.
pub(super) async fn addresses(shared: &Shared, sandbox: &str) -> Result<Vec<String>, CriError> {
    if let Some(known) = locked(&shared.seen).addresses.get(sandbox) {
        return Ok(known.clone());
    }
    let status = shared.cri.sandbox_status(sandbox).await?;
    let Some(network) = status.and_then(|status| status.network) else { return Ok(Vec::new()) };
    let others = network.additional_ips.into_iter().map(|other| other.ip);
    let found: Vec<String> =
        [network.ip].into_iter().chain(others).filter(|ip| !ip.is_empty()).collect();
    if !found.is_empty() {
        locked(&shared.seen).addresses.insert(sandbox.to_owned(), found.clone());
    }
    Ok(found)
}

async fn container(
    shared: &Shared,
    pod: &Pod,
    listed: &Listed,
) -> Result<Option<Container>, CriError> {
    let Some(status) = status(shared, pod, listed).await? else { return Ok(None) };
    let (name, attempt) = (name_of(listed), attempt_of(listed));
    let starting = Starting { uid: uid_of(pod), name, attempt, id: &listed.id };
    if starting.was_cut_off(&shared.places, &status) {
        return Ok(None);
    }
    let state = match ContainerState::try_from(listed.state) {
        Ok(ContainerState::Running) => {
            let stopping = shared.stops.is_under_way(&listed.id);
            State::Running { started: true, ready: true, stopping, until: None }
        }
        Ok(ContainerState::Unknown) => State::Exited {
            finished: time(status.finished_at.max(status.started_at)),
            code: LOST,
            reason: "ContainerStatusUnknown".into(),
            message: Some("The container could not be located when the pod was terminated".into()),
        },
        _ => State::Exited {
            finished: time(status.finished_at),
            code: status.exit_code,
            reason: reason(&status),
            message: Some(status.message.clone()).filter(|text| !text.is_empty()),
        },
    };
    let asked = labels::image(&listed.annotations);
    let image = status.image.as_ref().map_or("", |image| image.image.as_str());
    let image_id = if status.image_ref.is_empty() { image } else { &status.image_ref };
    let image = if image.is_empty() { asked.unwrap_or_default() } else { image };
    Ok(Some(Container {
        name: name.to_owned(),
        id: format!("{}://{}", shared.runtime, listed.id),
        image: image.to_owned(),
        image_id: image_id.to_owned(),
        asked: asked.map(str::to_owned),
        attempt,
        // What could not be started says so by the first moment that there is.
        started: time(status.started_at),
        state,
        outdated: false,
        failed_probe: None,
        user: status.user.and_then(|user| user.linux).map(who),
        last: None,
    }))
}

fn who(user: LinuxContainerUser) -> Who {
    let LinuxContainerUser { uid, gid, supplemental_groups: groups } = user;
    Who { uid, gid, supplemental_groups: Some(groups).filter(|groups| !groups.is_empty()) }
}

/// Whether a container that ended with this code is started again.
fn again(pod: &Pod, name: &str, code: i32) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    all.find(|one| one.name == name).is_some_and(|one| restarts(one, spec, code))
}

fn reason(status: &ContainerStatus) -> String {
    match status.reason.as_str() {
        "" if status.exit_code == 0 => "Completed".into(),
        "" => "Error".into(),
        said => said.to_owned(),
    }
}

/// What the runtime knows of a container, with its last words in the message. It is asked once for
/// each state, which does not come back.
async fn status(
    shared: &Shared,
    pod: &Pod,
    listed: &Listed,
) -> Result<Option<ContainerStatus>, CriError> {
    let known = locked(&shared.seen).containers.get(&listed.id).cloned();
    if let Some(known) = known.as_ref().filter(|known| known.status.state == listed.state) {
        return Ok(Some(known.status.clone()));
    }
    let Some(mut status) = shared.cri.container_status(&listed.id).await? else { return Ok(None) };
    if status.state == i32::from(ContainerState::Exited) {
        last_words::add(shared, pod, &mut status);
    }
    let known = Known::now(status, known.as_ref());
    let status = known.status.clone();
    // What it was listed as may be older than this: then it is asked again the next time.
    locked(&shared.seen).containers.insert(listed.id.clone(), known);
    Ok(Some(status))
}

fn time(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}
