//! The calls, each with a deadline of its own.
//!
//! The connection is made when it is needed, and made again when the runtime was restarted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use super::error::CriError;
use super::wire::container as c;
use super::wire::image as i;
use super::wire::sandbox as s;
use super::wire::snapshot as n;
use super::wire::{
    RuntimeCondition, RuntimeFeatures, RuntimeHandler, StatusRequest, StatusResponse,
    VersionRequest, VersionResponse,
};

/// How long to wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long the runtime may take for what it only looks up.
const SOON: Duration = Duration::from_secs(10);
/// How long it may take for the rest: as a kubelet's `--runtime-request-timeout`.
const LATER: Duration = Duration::from_secs(120);
/// How long a sandbox may take: its network is made by others.
const SANDBOX: Duration = Duration::from_secs(240);
/// How long the layers of an image may take.
const PULL: Duration = Duration::from_secs(1800);
/// The largest answer that is read: a list of all containers.
const ANSWER_MAX: usize = 16 << 20;

/// A call.
#[derive(Clone, Copy)]
struct Method {
    path: &'static str,
    within: Duration,
}

macro_rules! runtime {
    ($name:literal, $within:expr) => {
        Method { path: concat!("/runtime.v1.RuntimeService/", $name), within: $within }
    };
}

macro_rules! images {
    ($name:literal, $within:expr) => {
        Method { path: concat!("/runtime.v1.ImageService/", $name), within: $within }
    };
}

macro_rules! snapshots {
    ($name:literal, $within:expr) => {
        Method {
            path: concat!("/containerd.services.snapshots.v1.Snapshots/", $name),
            within: $within,
        }
    };
}

/// Where containerd keeps what belongs to Pods, for its services that are not CRI's.
const NAMESPACE: (&str, &str) = ("containerd-namespace", "k8s.io");
/// What containerd keeps although nobody that it knows refers to it.
const ROOT: &str = "containerd.io/gc.root";

/// A container runtime.
#[derive(Clone, Debug)]
pub(crate) struct Cri {
    socket: PathBuf,
    channel: Channel,
    /// What it said last of itself.
    said: Arc<watch::Sender<Said>>,
}

/// What a runtime says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Whether it and the network work.
    pub(crate) conditions: Vec<RuntimeCondition>,
    /// Its ways to run Pods, if it tells them.
    pub(crate) handlers: Vec<RuntimeHandler>,
    /// What it can do, if it tells that.
    pub(crate) features: Option<RuntimeFeatures>,
}

impl Said {
    /// Whether mounts below one that is only read can be so as well, in this way to run Pods.
    pub(crate) fn reads_only_recursively(&self, handler: &str) -> bool {
        let mut handlers = self.handlers.iter();
        let found = handlers.find(|it| it.name == handler).and_then(|it| it.features.as_ref());
        found.is_some_and(|features| features.recursive_read_only_mounts)
    }
}

impl Cri {
    /// The runtime behind a socket, which may come later.
    pub(crate) fn at(socket: &Path) -> Result<Self, CriError> {
        let address = format!("unix://{}", socket.display());
        let endpoint = Endpoint::from_shared(address).map_err(|error| CriError::Absent {
            socket: socket.to_owned(),
            why: error.to_string(),
        })?;
        let channel = endpoint.connect_timeout(CONNECT_MAX).connect_lazy();
        let said = Arc::new(watch::channel(Said::default()).0);
        Ok(Self { socket: socket.to_owned(), channel, said })
    }

    /// Who it is.
    pub(crate) async fn version(&self) -> Result<VersionResponse, CriError> {
        let request = VersionRequest { version: "v1".into() };
        self.call(runtime!("Version", SOON), request).await
    }

    /// How it is.
    pub(crate) async fn status(&self) -> Result<Said, CriError> {
        let request = StatusRequest { verbose: false };
        let answer: StatusResponse = self.call(runtime!("Status", SOON), request).await?;
        let conditions = answer.status.unwrap_or_default().conditions;
        let (handlers, features) = (answer.runtime_handlers, answer.features);
        let said = Said { conditions, handlers, features };
        self.said.send_replace(said.clone());
        Ok(said)
    }

    /// The same as it was said to whoever asked last; nothing before that.
    pub(crate) fn said(&self) -> watch::Receiver<Said> {
        self.said.subscribe()
    }

    /// The image of sandboxes, if the runtime says which.
    pub(crate) async fn sandbox_image(&self) -> Result<Option<String>, CriError> {
        Ok(self.config().await?["sandboxImage"].as_str().map(str::to_owned))
    }

    /// Who keeps the layers of images.
    pub(crate) async fn snapshotter(&self) -> Result<String, CriError> {
        let config = self.config().await?;
        Ok(config["containerd"]["snapshotter"].as_str().unwrap_or("overlayfs").to_owned())
    }

    async fn config(&self) -> Result<Value, CriError> {
        let request = StatusRequest { verbose: true };
        let answer: StatusResponse = self.call(runtime!("Status", SOON), request).await?;
        Ok(parsed(&answer.info, "config"))
    }

    pub(crate) async fn run_sandbox(
        &self,
        config: s::PodSandboxConfig,
        handler: String,
    ) -> Result<String, CriError> {
        let request = s::RunPodSandboxRequest { config: Some(config), runtime_handler: handler };
        let answer: s::RunPodSandboxResponse =
            self.call(runtime!("RunPodSandbox", SANDBOX), request).await?;
        Ok(answer.pod_sandbox_id)
    }

    /// Stops a sandbox with all its containers, and takes its network down. Done again, it changes
    /// nothing.
    pub(crate) async fn stop_sandbox(&self, id: &str) -> Result<(), CriError> {
        let request = s::StopPodSandboxRequest { pod_sandbox_id: id.to_owned() };
        let answer: Result<s::StopPodSandboxResponse, _> =
            self.call(runtime!("StopPodSandbox", SANDBOX), request).await;
        gone_is_done(answer.map(drop))
    }

    /// Tells what the containers of a sandbox have together from now on. Older runtimes do not want to
    /// know, which is no reason not to give it to them.
    pub(crate) async fn update_sandbox(
        &self,
        id: &str,
        resources: c::LinuxContainerResources,
    ) -> Result<(), CriError> {
        let request = c::UpdatePodSandboxResourcesRequest {
            pod_sandbox_id: id.to_owned(),
            overhead: None,
            resources: Some(resources),
        };
        let answer: Result<c::UpdatePodSandboxResourcesResponse, _> =
            self.call(runtime!("UpdatePodSandboxResources", LATER), request).await;
        match answer {
            Err(error) if error.is_unimplemented() => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Removes a sandbox with all its containers.
    pub(crate) async fn remove_sandbox(&self, id: &str) -> Result<(), CriError> {
        let request = s::RemovePodSandboxRequest { pod_sandbox_id: id.to_owned() };
        let answer: Result<s::RemovePodSandboxResponse, _> =
            self.call(runtime!("RemovePodSandbox", LATER), request).await;
        gone_is_done(answer.map(drop))
    }

    pub(crate) async fn sandbox_status(
        &self,
        id: &str,
    ) -> Result<Option<s::PodSandboxStatus>, CriError> {
        let request = s::PodSandboxStatusRequest { pod_sandbox_id: id.to_owned(), verbose: false };
        let answer: Result<s::PodSandboxStatusResponse, _> =
            self.call(runtime!("PodSandboxStatus", SOON), request).await;
        Ok(found(answer)?.and_then(|answer| answer.status))
    }

    /// The sandboxes with a label, or all.
    pub(crate) async fn sandboxes(
        &self,
        label: Option<(&str, &str)>,
    ) -> Result<Vec<s::PodSandbox>, CriError> {
        let filter = s::PodSandboxFilter { label_selector: selector(label), ..Default::default() };
        let request = s::ListPodSandboxRequest { filter: Some(filter) };
        let answer: s::ListPodSandboxResponse =
            self.call(runtime!("ListPodSandbox", SOON), request).await?;
        Ok(answer.items)
    }

    pub(crate) async fn create_container(
        &self,
        request: c::CreateContainerRequest,
    ) -> Result<String, CriError> {
        let answer: c::CreateContainerResponse =
            self.call(runtime!("CreateContainer", LATER), request).await?;
        Ok(answer.container_id)
    }

    pub(crate) async fn start_container(&self, id: &str) -> Result<(), CriError> {
        let request = c::StartContainerRequest { container_id: id.to_owned() };
        let _: c::StartContainerResponse =
            self.call(runtime!("StartContainer", LATER), request).await?;
        Ok(())
    }

    /// Tells a container to end, and kills it after so long.
    pub(crate) async fn stop_container(&self, id: &str, grace: Duration) -> Result<(), CriError> {
        let timeout = i64::try_from(grace.as_secs()).unwrap_or(i64::MAX);
        let request = c::StopContainerRequest { container_id: id.to_owned(), timeout };
        let method = runtime!("StopContainer", LATER.saturating_add(grace));
        let answer: Result<c::StopContainerResponse, _> = self.call(method, request).await;
        gone_is_done(answer.map(drop))
    }

    /// Gives a running container other resources.
    pub(crate) async fn update_container(
        &self,
        id: &str,
        resources: c::LinuxContainerResources,
    ) -> Result<(), CriError> {
        let request = c::UpdateContainerResourcesRequest {
            container_id: id.to_owned(),
            linux: Some(resources),
        };
        let _: c::UpdateContainerResourcesResponse =
            self.call(runtime!("UpdateContainerResources", LATER), request).await?;
        Ok(())
    }

    pub(crate) async fn remove_container(&self, id: &str) -> Result<(), CriError> {
        let request = c::RemoveContainerRequest { container_id: id.to_owned() };
        let answer: Result<c::RemoveContainerResponse, _> =
            self.call(runtime!("RemoveContainer", LATER), request).await;
        gone_is_done(answer.map(drop))
    }

    /// The containers with a label, or all.
    pub(crate) async fn containers(
        &self,
        label: Option<(&str, &str)>,
    ) -> Result<Vec<c::Container>, CriError> {
        let filter = c::ContainerFilter { label_selector: selector(label), ..Default::default() };
        let request = c::ListContainersRequest { filter: Some(filter) };
        let answer: c::ListContainersResponse =
            self.call(runtime!("ListContainers", SOON), request).await?;
        Ok(answer.containers)
    }

    pub(crate) async fn container_status(
        &self,
        id: &str,
    ) -> Result<Option<c::ContainerStatus>, CriError> {
        let request = c::ContainerStatusRequest { container_id: id.to_owned(), verbose: false };
        let answer: Result<c::ContainerStatusResponse, _> =
            self.call(runtime!("ContainerStatus", SOON), request).await;
        Ok(found(answer)?.and_then(|answer| answer.status))
    }

    /// What the containers with a label use.
    pub(crate) async fn container_stats(
        &self,
        label: Option<(&str, &str)>,
    ) -> Result<Vec<c::ContainerStats>, CriError> {
        let filter = c::ContainerStatsFilter { label_selector: selector(label) };
        let request = c::ListContainerStatsRequest { filter: Some(filter) };
        let answer: c::ListContainerStatsResponse =
            self.call(runtime!("ListContainerStats", SOON), request).await?;
        Ok(answer.stats)
    }

    /// Lets it write the log of a container that was renamed into a new file.
    pub(crate) async fn reopen_log(&self, id: &str) -> Result<(), CriError> {
        let request = c::ReopenContainerLogRequest { container_id: id.to_owned() };
        let _: c::ReopenContainerLogResponse =
            self.call(runtime!("ReopenContainerLog", SOON), request).await?;
        Ok(())
    }

    /// Runs a command in a container and waits for its end.
    pub(crate) async fn exec(
        &self,
        id: &str,
        command: Vec<String>,
        within: Duration,
    ) -> Result<c::ExecSyncResponse, CriError> {
        let timeout = i64::try_from(within.as_secs().max(1)).unwrap_or(i64::MAX);
        let request = c::ExecSyncRequest { container_id: id.to_owned(), cmd: command, timeout };
        self.call(runtime!("ExecSync", within.saturating_add(SOON)), request).await
    }

    pub(crate) async fn images(&self) -> Result<Vec<i::Image>, CriError> {
        let request = i::ListImagesRequest::default();
        let answer: i::ListImagesResponse = self.call(images!("ListImages", SOON), request).await?;
        Ok(answer.images)
    }

    pub(crate) async fn image(&self, name: &str) -> Result<Option<i::Image>, CriError> {
        let request = i::ImageStatusRequest { image: Some(image(name)), verbose: false };
        let answer: i::ImageStatusResponse =
            self.call(images!("ImageStatus", SOON), request).await?;
        Ok(answer.image)
    }

    /// What all layers of an image together are called, if the runtime says so.
    pub(crate) async fn layers(&self, name: &str) -> Result<Option<String>, CriError> {
        let request = i::ImageStatusRequest { image: Some(image(name)), verbose: true };
        let answer: i::ImageStatusResponse =
            self.call(images!("ImageStatus", SOON), request).await?;
        Ok(parsed(&answer.info, "info")["chainID"].as_str().map(str::to_owned))
    }

    /// Says what is to be mounted to read these layers, and keeps them until the snapshot is removed.
    pub(crate) async fn view_snapshot(
        &self,
        snapshotter: &str,
        key: &str,
        layers: &str,
    ) -> Result<Vec<n::Mount>, CriError> {
        let request = n::ViewSnapshotRequest {
            snapshotter: snapshotter.to_owned(),
            key: key.to_owned(),
            parent: layers.to_owned(),
            labels: selector(Some((ROOT, "true"))),
        };
        let answer: n::ViewSnapshotResponse = self.call(snapshots!("View", LATER), request).await?;
        Ok(answer.mounts)
    }

    pub(crate) async fn remove_snapshot(
        &self,
        snapshotter: &str,
        key: &str,
    ) -> Result<(), CriError> {
        let request =
            n::RemoveSnapshotRequest { snapshotter: snapshotter.to_owned(), key: key.to_owned() };
        let answer: Result<n::RemoveSnapshotResponse, _> =
            self.call(snapshots!("Remove", LATER), request).await;
        gone_is_done(answer.map(drop))
    }

    pub(crate) async fn pull_image(
        &self,
        name: &str,
        auth: Option<i::AuthConfig>,
        sandbox: s::PodSandboxConfig,
    ) -> Result<String, CriError> {
        let (image, sandbox_config) = (Some(image(name)), Some(sandbox));
        let request = i::PullImageRequest { image, auth, sandbox_config };
        let answer: i::PullImageResponse = self.call(images!("PullImage", PULL), request).await?;
        Ok(answer.image_ref)
    }

    pub(crate) async fn remove_image(&self, id: &str) -> Result<(), CriError> {
        let request = i::RemoveImageRequest { image: Some(image(id)) };
        let answer: Result<i::RemoveImageResponse, _> =
            self.call(images!("RemoveImage", LATER), request).await;
        gone_is_done(answer.map(drop))
    }

    /// Where images are kept.
    pub(crate) async fn image_disk(&self) -> Result<Option<String>, CriError> {
        let request = i::ImageFsInfoRequest {};
        let answer: i::ImageFsInfoResponse =
            self.call(images!("ImageFsInfo", SOON), request).await?;
        let disk = answer.image_filesystems.into_iter().next().and_then(|disk| disk.fs_id);
        Ok(disk.map(|disk| disk.mountpoint))
    }

    async fn call<Q, A>(&self, method: Method, request: Q) -> Result<A, CriError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let Method { path, within } = method;
        let name = path.rsplit('/').next().unwrap_or(path);
        match timeout(within, self.ask(path, request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => Err(self.failure(&status, name, within)),
            Err(_) => Err(CriError::Deadline { method: name, within }),
        }
    }

    async fn ask<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_MAX);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let codec = ProstCodec::<Q, A>::default();
        let mut request = tonic::Request::new(request);
        request.metadata_mut().insert(NAMESPACE.0, MetadataValue::from_static(NAMESPACE.1));
        Ok(grpc.unary(request, PathAndQuery::from_static(path), codec).await?.into_inner())
    }

    fn failure(&self, status: &Status, method: &'static str, within: Duration) -> CriError {
        // What the runtime itself answers has no other cause: this is about the connection. What was
        // asked may be done or not.
        let mut source = std::error::Error::source(status);
        if source.is_some() {
            let mut why = status.message().to_owned();
            while let Some(cause) = source {
                why = cause.to_string();
                source = cause.source();
            }
            return CriError::Absent { socket: self.socket.clone(), why };
        }
        match status.code() {
            Code::DeadlineExceeded => CriError::Deadline { method, within },
            code => CriError::Refused { code, message: status.message().to_owned() },
        }
    }
}

/// What the runtime tells as JSON, if it does.
fn parsed(info: &HashMap<String, String>, name: &str) -> Value {
    info.get(name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn image(name: &str) -> i::ImageSpec {
    i::ImageSpec { image: name.to_owned() }
}

fn selector(label: Option<(&str, &str)>) -> HashMap<String, String> {
    label.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// What is gone already need not be stopped or removed.
fn gone_is_done(answer: Result<(), CriError>) -> Result<(), CriError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(()),
        answer => answer,
    }
}

fn found<A>(answer: Result<A, CriError>) -> Result<Option<A>, CriError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}
