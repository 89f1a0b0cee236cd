//! A container runtime that has no containers, and does not always tell the truth.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use prost::Message;
use steersman::clock;
use tokio::time::timeout;

use super::grpc::Refusal;
use super::wire::container as c;
use super::wire::image as i;
use super::wire::sandbox as s;
use super::wire::{
    RuntimeCondition, RuntimeStatus, StatusRequest, StatusResponse, UInt64Value, VersionRequest,
    VersionResponse,
};

const NOT_FOUND: u32 = 5;
const DENIED: u32 = 7;
/// In nanoseconds.
const HOUR: i64 = 3_600_000_000_000;
/// The code of what is killed.
const KILLED: i32 = 137;

/// How it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Honest,
    /// After so long.
    Slow(Duration),
    /// Never.
    Silent,
    /// With this code, whatever it is asked.
    Refuses(u32),
    /// With what is no message.
    Babbles,
    /// It does what it is told, and shows nothing of it.
    Forgets,
    /// Everything is there twice, once under a name that it does not know itself.
    Doubles,
    /// What it lists, it does not know when it is asked for it.
    Vanishes,
    /// States that there are none of, times before and after all others, countless attempts.
    Absurd,
    /// What it lists is that of others, too.
    Confuses,
    /// What it is told to start it kills, and does not say so.
    KillsStarts,
    /// It never has made a container.
    NeverCreates,
    /// Its network is down.
    NoNetwork,
    /// What it runs in containers takes so long.
    SlowHooks(Duration),
}

/// A registry that wants to see a password.
struct Registry {
    password: String,
    /// Whether it has seen it.
    pulled: bool,
}

/// A runtime.
pub(crate) struct Liar {
    manner: Mutex<Manner>,
    state: Mutex<State>,
    /// By how much its clock is ahead of the agent's, in nanoseconds.
    ahead: Mutex<i64>,
    /// Where its images are, if it says so.
    images: Mutex<Option<PathBuf>>,
    /// Where its image comes from, if it is not there from the beginning.
    registry: Mutex<Option<Registry>>,
}

/// What it says that there is.
#[derive(Default)]
struct State {
    made: usize,
    sandboxes: BTreeMap<String, s::PodSandbox>,
    containers: BTreeMap<String, (c::Container, c::ContainerStatus)>,
}

impl State {
    fn id(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}-{}", self.made)
    }
}

impl Liar {
    pub(super) fn new() -> Self {
        Self {
            manner: Mutex::new(Manner::Honest),
            state: Mutex::default(),
            ahead: Mutex::default(),
            images: Mutex::default(),
            registry: Mutex::default(),
        }
    }

    /// Has its image only once somebody has pulled it with this password.
    pub(super) fn guard_image(&self, password: &str) {
        let registry = Registry { password: password.to_owned(), pulled: false };
        *self.registry.lock().expect("nobody panics with it") = Some(registry);
    }

    /// Sets the clock of its machine, by so many hours.
    pub(super) fn set_clock(&self, hours: i64) {
        *self.ahead.lock().expect("nobody panics with it") = hours * HOUR;
    }

    /// Keeps its images, and what containers write, on the disk of a directory.
    pub(super) fn keep_images(&self, directory: PathBuf) {
        *self.images.lock().expect("nobody panics with it") = Some(directory);
    }

    /// Lets the container of this name that runs end badly.
    pub(super) fn crash(&self, name: &str) {
        self.end(name, 1);
    }

    /// Lets it end well.
    pub(super) fn succeed(&self, name: &str) {
        self.end(name, 0);
    }

    fn end(&self, name: &str, code: i32) {
        let now = self.now();
        let running = i32::from(c::ContainerState::Running);
        let mut state = self.state();
        let is_it = |one: &&mut (c::Container, c::ContainerStatus)| {
            one.0.state == running && one.0.metadata.as_ref().is_some_and(|it| it.name == name)
        };
        let found = state.containers.values_mut().find(is_it).expect("it runs");
        exit(found, code, now);
    }

    /// How many containers run.
    pub(super) fn running(&self) -> usize {
        let running = i32::from(c::ContainerState::Running);
        self.state().containers.values().filter(|one| one.0.state == running).count()
    }

    /// How many containers have been killed.
    pub(super) fn killed(&self) -> usize {
        let state = self.state();
        state.containers.values().filter(|(_, status)| status.exit_code == KILLED).count()
    }

    /// What time it is for it.
    fn now(&self) -> i64 {
        let ahead = *self.ahead.lock().expect("nobody panics with it");
        i64::try_from(clock::now().as_nanosecond()).expect("a year that there is") + ahead
    }

    pub(super) fn behave(&self, manner: Manner) {
        *self.manner.lock().expect("nobody panics with it") = manner;
    }

    /// What is left of all Pods.
    pub(super) fn left(&self) -> Vec<String> {
        let state = self.state();
        state.sandboxes.keys().chain(state.containers.keys()).cloned().collect()
    }

    /// How many sandboxes are ready.
    pub(super) fn ready_sandboxes(&self) -> usize {
        let ready = i32::from(s::PodSandboxState::Ready);
        self.state().sandboxes.values().filter(|one| one.state == ready).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Answers a call, in its manner.
    pub(super) async fn answer(&self, method: &str, message: &[u8]) -> Result<Vec<u8>, Refusal> {
        let manner = *self.manner.lock().expect("nobody panics with it");
        match manner {
            Manner::Slow(pause) => {
                let _ = timeout(pause, std::future::pending::<()>()).await;
            }
            Manner::Silent => std::future::pending().await,
            Manner::Refuses(code) => return Err((code, "no".to_owned())),
            Manner::Babbles => return Ok(vec![0xff; 9]),
            Manner::SlowHooks(pause) if method == "ExecSync" => {
                let _ = timeout(pause, std::future::pending::<()>()).await;
            }
            Manner::NeverCreates if method == "CreateContainer" => std::future::pending().await,
            _ => {}
        }
        let answer = self.do_it(method, message, manner);
        if manner == Manner::KillsStarts && method == "StartContainer" {
            self.kill();
            std::future::pending::<()>().await;
        }
        answer
    }

    /// Kills what runs.
    fn kill(&self) {
        let now = self.now();
        let running = i32::from(c::ContainerState::Running);
        let mut state = self.state();
        let started = state.containers.values_mut().filter(|one| one.0.state == running);
        started.for_each(|one| exit(one, KILLED, now));
    }

    fn do_it(&self, method: &str, message: &[u8], manner: Manner) -> Result<Vec<u8>, Refusal> {
        match method {
            "Version" => call(message, |_: VersionRequest| Ok(version())),
            "Status" => call(message, |_: StatusRequest| Ok(status(manner))),
            "RunPodSandbox" => call(message, |it| Ok(self.run_sandbox(it))),
            "StopPodSandbox" => call(message, |it| Ok(self.stop_sandbox(&it))),
            "RemovePodSandbox" => call(message, |it| Ok(self.remove_sandbox(&it))),
            "PodSandboxStatus" => call(message, |it| self.sandbox_status(&it, manner)),
            "ListPodSandbox" => call(message, |it| Ok(self.sandboxes(&it, manner))),
            "CreateContainer" => call(message, |it| self.create(it)),
            "StartContainer" => call(message, |it| self.start(&it)),
            "StopContainer" => call(message, |it| Ok(self.stop(&it))),
            "RemoveContainer" => call(message, |it| Ok(self.remove(&it))),
            "ListContainers" => call(message, |it| Ok(self.containers(&it, manner))),
            "ContainerStatus" => call(message, |it| self.container_status(&it, manner)),
            "ExecSync" => call(message, |_: c::ExecSyncRequest| Ok(c::ExecSyncResponse::default())),
            "ImageFsInfo" => call(message, |_: i::ImageFsInfoRequest| self.image_disk()),
            "ListContainerStats" => {
                call(message, |_: c::ListContainerStatsRequest| Ok(self.stats()))
            }
            "ListImages" => {
                let images = i::ListImagesResponse { images: vec![image()] };
                call(message, |_: i::ListImagesRequest| Ok(images))
            }
            "ImageStatus" => {
                let image = self.has_image().then(image);
                let answer = i::ImageStatusResponse { image, ..Default::default() };
                call(message, |_: i::ImageStatusRequest| Ok(answer))
            }
            "PullImage" => call(message, |it| self.pull(it)),
            other => Err((12, format!("unknown method {other}"))),
        }
    }

    fn has_image(&self) -> bool {
        let registry = self.registry.lock().expect("nobody panics with it");
        registry.as_ref().is_none_or(|registry| registry.pulled)
    }

    fn pull(&self, asked: i::PullImageRequest) -> Result<i::PullImageResponse, Refusal> {
        let shown = asked.auth.unwrap_or_default().password;
        let mut registry = self.registry.lock().expect("nobody panics with it");
        if let Some(registry) = registry.as_mut() {
            if registry.password != shown {
                return Err((DENIED, format!("denied: {shown:?} is not the password")));
            }
            registry.pulled = true;
        }
        Ok(i::PullImageResponse { image_ref: image().id })
    }

    fn run_sandbox(&self, asked: s::RunPodSandboxRequest) -> s::RunPodSandboxResponse {
        let created_at = self.now();
        let mut state = self.state();
        let id = state.id("sandbox");
        let config = asked.config.unwrap_or_default();
        let sandbox = s::PodSandbox {
            id: id.clone(),
            metadata: config.metadata,
            state: s::PodSandboxState::Ready.into(),
            created_at,
            labels: config.labels,
            runtime_handler: asked.runtime_handler,
        };
        state.sandboxes.insert(id.clone(), sandbox);
        s::RunPodSandboxResponse { pod_sandbox_id: id }
    }

    fn stop_sandbox(&self, asked: &s::StopPodSandboxRequest) -> s::StopPodSandboxResponse {
        let now = self.now();
        let mut state = self.state();
        if let Some(sandbox) = state.sandboxes.get_mut(&asked.pod_sandbox_id) {
            sandbox.state = s::PodSandboxState::NotReady.into();
        }
        let inside =
            state.containers.values_mut().filter(|it| it.0.pod_sandbox_id == asked.pod_sandbox_id);
        inside.for_each(|one| exit(one, KILLED, now));
        s::StopPodSandboxResponse {}
    }

    fn remove_sandbox(&self, asked: &s::RemovePodSandboxRequest) -> s::RemovePodSandboxResponse {
        let mut state = self.state();
        state.sandboxes.remove(&asked.pod_sandbox_id);
        state.containers.retain(|_, it| it.0.pod_sandbox_id != asked.pod_sandbox_id);
        s::RemovePodSandboxResponse {}
    }

    fn sandbox_status(
        &self,
        asked: &s::PodSandboxStatusRequest,
        manner: Manner,
    ) -> Result<s::PodSandboxStatusResponse, Refusal> {
        let state = self.state();
        let found = state.sandboxes.get(&asked.pod_sandbox_id);
        let found =
            found.filter(|_| knows(manner)).ok_or_else(|| unknown(&asked.pod_sandbox_id))?;
        let network = s::PodSandboxNetworkStatus { ip: "10.1.2.3".into(), additional_ips: vec![] };
        let status = s::PodSandboxStatus {
            id: found.id.clone(),
            metadata: found.metadata.clone(),
            state: found.state,
            created_at: found.created_at,
            network: Some(network),
        };
        Ok(s::PodSandboxStatusResponse { status: Some(status) })
    }

    fn sandboxes(
        &self,
        asked: &s::ListPodSandboxRequest,
        manner: Manner,
    ) -> s::ListPodSandboxResponse {
        let wanted = asked.filter.clone().unwrap_or_default().label_selector;
        let fits = |one: &s::PodSandbox| {
            manner == Manner::Confuses
                || wanted.iter().all(|(key, value)| one.labels.get(key) == Some(value))
        };
        let mut items: Vec<_> = self.state().sandboxes.values().cloned().collect();
        items.retain(fits);
        match manner {
            Manner::Forgets => items.clear(),
            Manner::Doubles => items.extend(items.clone().into_iter().map(|mut one| {
                one.id.push_str("-again");
                one
            })),
            Manner::Absurd => items.iter_mut().for_each(|one| {
                one.created_at = i64::MIN;
                if let Some(metadata) = &mut one.metadata {
                    metadata.attempt = u32::MAX;
                }
            }),
            _ => {}
        }
        s::ListPodSandboxResponse { items }
    }

    fn create(
        &self,
        asked: c::CreateContainerRequest,
    ) -> Result<c::CreateContainerResponse, Refusal> {
        let created_at = self.now();
        let mut state = self.state();
        if !state.sandboxes.contains_key(&asked.pod_sandbox_id) {
            return Err(unknown(&asked.pod_sandbox_id));
        }
        let id = state.id("container");
        let config = asked.config.unwrap_or_default();
        let created = c::ContainerState::Created.into();
        let container = c::Container {
            id: id.clone(),
            pod_sandbox_id: asked.pod_sandbox_id,
            metadata: config.metadata.clone(),
            image: config.image.clone(),
            image_ref: "sha256:1".into(),
            state: created,
            created_at,
            labels: config.labels,
            annotations: config.annotations.clone(),
        };
        let status = c::ContainerStatus {
            id: id.clone(),
            metadata: config.metadata,
            state: created,
            created_at,
            image: config.image,
            image_ref: "sha256:1".into(),
            annotations: config.annotations,
            ..c::ContainerStatus::default()
        };
        state.containers.insert(id.clone(), (container, status));
        Ok(c::CreateContainerResponse { container_id: id })
    }

    fn start(
        &self,
        asked: &c::StartContainerRequest,
    ) -> Result<c::StartContainerResponse, Refusal> {
        let now = self.now();
        let mut state = self.state();
        let found = state.containers.get_mut(&asked.container_id);
        let (container, status) = found.ok_or_else(|| unknown(&asked.container_id))?;
        container.state = c::ContainerState::Running.into();
        (status.state, status.started_at) = (container.state, now);
        Ok(c::StartContainerResponse {})
    }

    fn stop(&self, asked: &c::StopContainerRequest) -> c::StopContainerResponse {
        let now = self.now();
        if let Some(found) = self.state().containers.get_mut(&asked.container_id) {
            exit(found, 0, now);
        }
        c::StopContainerResponse {}
    }

    fn remove(&self, asked: &c::RemoveContainerRequest) -> c::RemoveContainerResponse {
        self.state().containers.remove(&asked.container_id);
        c::RemoveContainerResponse {}
    }

    fn containers(
        &self,
        asked: &c::ListContainersRequest,
        manner: Manner,
    ) -> c::ListContainersResponse {
        let wanted = asked.filter.clone().unwrap_or_default().label_selector;
        let fits = |one: &c::Container| {
            manner == Manner::Confuses
                || wanted.iter().all(|(key, value)| one.labels.get(key) == Some(value))
        };
        let state = self.state();
        let mut containers: Vec<_> = state.containers.values().map(|it| it.0.clone()).collect();
        containers.retain(fits);
        match manner {
            Manner::Forgets => containers.clear(),
            Manner::Doubles => containers.extend(containers.clone().into_iter().map(|mut one| {
                one.id.push_str("-again");
                one
            })),
            Manner::Absurd => containers.iter_mut().for_each(|one| {
                (one.state, one.created_at) = (99, i64::MAX);
                if let Some(metadata) = &mut one.metadata {
                    metadata.attempt = u32::MAX;
                }
            }),
            _ => {}
        }
        c::ListContainersResponse { containers }
    }

    fn image_disk(&self) -> Result<i::ImageFsInfoResponse, Refusal> {
        let directory = self.images.lock().expect("nobody panics with it").clone();
        let directory = directory.ok_or_else(|| (12, "not on this machine".to_owned()))?;
        let mountpoint = directory.display().to_string();
        let fs_id = Some(i::FilesystemIdentifier { mountpoint });
        let disk = i::FilesystemUsage { fs_id, ..i::FilesystemUsage::default() };
        Ok(i::ImageFsInfoResponse { image_filesystems: vec![disk], ..Default::default() })
    }

    /// What containers use: so many bytes of the disk as their names have letters, in KiB.
    fn stats(&self) -> c::ListContainerStatsResponse {
        let stats = |(container, _): &(c::Container, c::ContainerStatus)| {
            let letters = container.metadata.as_ref().map_or(0, |metadata| metadata.name.len());
            let bytes = Some(UInt64Value { value: (letters as u64) << 10 });
            let attributes = c::ContainerAttributes {
                id: container.id.clone(),
                labels: container.labels.clone(),
            };
            c::ContainerStats {
                attributes: Some(attributes),
                memory: None,
                writable_layer: Some(i::FilesystemUsage {
                    used_bytes: bytes,
                    ..i::FilesystemUsage::default()
                }),
            }
        };
        let stats = self.state().containers.values().map(stats).collect();
        c::ListContainerStatsResponse { stats }
    }

    fn container_status(
        &self,
        asked: &c::ContainerStatusRequest,
        manner: Manner,
    ) -> Result<c::ContainerStatusResponse, Refusal> {
        let state = self.state();
        let found = state.containers.get(&asked.container_id).filter(|_| knows(manner));
        let mut status = found.ok_or_else(|| unknown(&asked.container_id))?.1.clone();
        if manner == Manner::Absurd {
            status.state = -7;
            (status.created_at, status.started_at) = (i64::MIN, i64::MAX);
            (status.finished_at, status.exit_code) = (i64::MAX, i32::MIN);
        }
        Ok(c::ContainerStatusResponse { status: Some(status) })
    }
}

/// Whether it knows what it has listed.
fn knows(manner: Manner) -> bool {
    !matches!(manner, Manner::Forgets | Manner::Vanishes)
}

fn exit((container, status): &mut (c::Container, c::ContainerStatus), code: i32, now: i64) {
    container.state = c::ContainerState::Exited.into();
    (status.state, status.finished_at, status.exit_code) = (container.state, now, code);
}

fn unknown(id: &str) -> Refusal {
    (NOT_FOUND, format!("no {id}"))
}

fn version() -> VersionResponse {
    VersionResponse {
        version: "0.1.0".into(),
        runtime_name: "liar".into(),
        runtime_version: "1".into(),
        runtime_api_version: "v1".into(),
    }
}

fn status(manner: Manner) -> StatusResponse {
    let condition = |kind: &str| RuntimeCondition {
        r#type: kind.into(),
        status: true,
        reason: String::new(),
        message: String::new(),
    };
    let mut network = condition("NetworkReady");
    if manner == Manner::NoNetwork {
        network.status = false;
        (network.reason, network.message) = ("NetworkPluginNotReady".into(), "no network".into());
    }
    let conditions = vec![condition("RuntimeReady"), network];
    StatusResponse { status: Some(RuntimeStatus { conditions }), ..StatusResponse::default() }
}

fn image() -> i::Image {
    i::Image { id: "sha256:1".into(), repo_tags: vec!["web:1".into()], ..i::Image::default() }
}

/// Reads a request, and writes the answer.
fn call<Q, A>(
    message: &[u8],
    answer: impl FnOnce(Q) -> Result<A, Refusal>,
) -> Result<Vec<u8>, Refusal>
where
    Q: Message + Default,
    A: Message,
{
    let request = Q::decode(message).map_err(|error| (13, error.to_string()))?;
    answer(request).map(|answer| answer.encode_to_vec())
}
