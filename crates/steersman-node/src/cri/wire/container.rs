//! Containers, and what they use.

use std::collections::HashMap;

use super::image::{FilesystemUsage, ImageSpec};
use super::sandbox::{
    NamespaceOption, PodSandboxConfig, SecurityProfile, SupplementalGroupsPolicy,
};
use super::{Int64Value, UInt64Value};

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint32, tag = "2")]
    pub(crate) attempt: u32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Mount {
    #[prost(string, tag = "1")]
    pub(crate) container_path: String,
    #[prost(string, tag = "2")]
    pub(crate) host_path: String,
    #[prost(bool, tag = "3")]
    pub(crate) readonly: bool,
    #[prost(enumeration = "MountPropagation", tag = "5")]
    pub(crate) propagation: i32,
    #[prost(bool, tag = "8")]
    pub(crate) recursive_read_only: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct LinuxContainerResources {
    #[prost(int64, tag = "1")]
    pub(crate) cpu_period: i64,
    #[prost(int64, tag = "2")]
    pub(crate) cpu_quota: i64,
    #[prost(int64, tag = "3")]
    pub(crate) cpu_shares: i64,
    #[prost(int64, tag = "4")]
    pub(crate) memory_limit_in_bytes: i64,
    #[prost(int64, tag = "5")]
    pub(crate) oom_score_adj: i64,
    /// Files of the second version of cgroups, and what is written into them.
    #[prost(map = "string, string", tag = "9")]
    pub(crate) unified: HashMap<String, String>,
    #[prost(int64, tag = "10")]
    pub(crate) memory_swap_limit_in_bytes: i64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Capability {
    #[prost(string, repeated, tag = "1")]
    pub(crate) add_capabilities: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) drop_capabilities: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct LinuxContainerSecurityContext {
    #[prost(message, optional, tag = "1")]
    pub(crate) capabilities: Option<Capability>,
    #[prost(bool, tag = "2")]
    pub(crate) privileged: bool,
    #[prost(message, optional, tag = "3")]
    pub(crate) namespace_options: Option<NamespaceOption>,
    #[prost(message, optional, tag = "5")]
    pub(crate) run_as_user: Option<Int64Value>,
    #[prost(message, optional, tag = "12")]
    pub(crate) run_as_group: Option<Int64Value>,
    #[prost(string, tag = "6")]
    pub(crate) run_as_username: String,
    #[prost(bool, tag = "7")]
    pub(crate) readonly_rootfs: bool,
    #[prost(int64, repeated, tag = "8")]
    pub(crate) supplemental_groups: Vec<i64>,
    #[prost(bool, tag = "11")]
    pub(crate) no_new_privs: bool,
    #[prost(string, repeated, tag = "13")]
    pub(crate) masked_paths: Vec<String>,
    #[prost(string, repeated, tag = "14")]
    pub(crate) readonly_paths: Vec<String>,
    #[prost(message, optional, tag = "15")]
    pub(crate) seccomp: Option<SecurityProfile>,
    #[prost(message, optional, tag = "16")]
    pub(crate) apparmor: Option<SecurityProfile>,
    #[prost(enumeration = "SupplementalGroupsPolicy", tag = "17")]
    pub(crate) supplemental_groups_policy: i32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct LinuxContainerConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) resources: Option<LinuxContainerResources>,
    #[prost(message, optional, tag = "2")]
    pub(crate) security_context: Option<LinuxContainerSecurityContext>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) image: Option<ImageSpec>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) command: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub(crate) args: Vec<String>,
    #[prost(string, tag = "5")]
    pub(crate) working_dir: String,
    #[prost(message, repeated, tag = "6")]
    pub(crate) envs: Vec<KeyValue>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) mounts: Vec<Mount>,
    #[prost(map = "string, string", tag = "9")]
    pub(crate) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "10")]
    pub(crate) annotations: HashMap<String, String>,
    #[prost(string, tag = "11")]
    pub(crate) log_path: String,
    #[prost(bool, tag = "12")]
    pub(crate) stdin: bool,
    #[prost(bool, tag = "13")]
    pub(crate) stdin_once: bool,
    #[prost(bool, tag = "14")]
    pub(crate) tty: bool,
    #[prost(message, optional, tag = "15")]
    pub(crate) linux: Option<LinuxContainerConfig>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct CreateContainerRequest {
    #[prost(string, tag = "1")]
    pub(crate) pod_sandbox_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    pub(crate) sandbox_config: Option<PodSandboxConfig>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct CreateContainerResponse {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct StartContainerRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct StartContainerResponse {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct StopContainerRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(int64, tag = "2")]
    pub(crate) timeout: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct StopContainerResponse {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct UpdateContainerResourcesRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) linux: Option<LinuxContainerResources>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct UpdateContainerResourcesResponse {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct UpdatePodSandboxResourcesRequest {
    #[prost(string, tag = "1")]
    pub(crate) pod_sandbox_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) overhead: Option<LinuxContainerResources>,
    #[prost(message, optional, tag = "3")]
    pub(crate) resources: Option<LinuxContainerResources>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct UpdatePodSandboxResourcesResponse {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RemoveContainerRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct RemoveContainerResponse {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerFilter {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "3")]
    pub(crate) pod_sandbox_id: String,
    #[prost(map = "string, string", tag = "4")]
    pub(crate) label_selector: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ListContainersRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) filter: Option<ContainerFilter>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ListContainersResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) containers: Vec<Container>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Container {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) pod_sandbox_id: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "4")]
    pub(crate) image: Option<ImageSpec>,
    #[prost(string, tag = "5")]
    pub(crate) image_ref: String,
    #[prost(enumeration = "ContainerState", tag = "6")]
    pub(crate) state: i32,
    #[prost(int64, tag = "7")]
    pub(crate) created_at: i64,
    #[prost(map = "string, string", tag = "8")]
    pub(crate) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "9")]
    pub(crate) annotations: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerStatusRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(bool, tag = "2")]
    pub(crate) verbose: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<ContainerStatus>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerStatus {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) metadata: Option<ContainerMetadata>,
    #[prost(enumeration = "ContainerState", tag = "3")]
    pub(crate) state: i32,
    #[prost(int64, tag = "4")]
    pub(crate) created_at: i64,
    #[prost(int64, tag = "5")]
    pub(crate) started_at: i64,
    #[prost(int64, tag = "6")]
    pub(crate) finished_at: i64,
    #[prost(int32, tag = "7")]
    pub(crate) exit_code: i32,
    #[prost(message, optional, tag = "8")]
    pub(crate) image: Option<ImageSpec>,
    #[prost(string, tag = "9")]
    pub(crate) image_ref: String,
    #[prost(string, tag = "10")]
    pub(crate) reason: String,
    #[prost(string, tag = "11")]
    pub(crate) message: String,
    #[prost(map = "string, string", tag = "13")]
    pub(crate) annotations: HashMap<String, String>,
    #[prost(string, tag = "15")]
    pub(crate) log_path: String,
    #[prost(message, optional, tag = "18")]
    pub(crate) user: Option<ContainerUser>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerUser {
    #[prost(message, optional, tag = "1")]
    pub(crate) linux: Option<LinuxContainerUser>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct LinuxContainerUser {
    #[prost(int64, tag = "1")]
    pub(crate) uid: i64,
    #[prost(int64, tag = "2")]
    pub(crate) gid: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) supplemental_groups: Vec<i64>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerStatsFilter {
    #[prost(map = "string, string", tag = "3")]
    pub(crate) label_selector: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ListContainerStatsRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) filter: Option<ContainerStatsFilter>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ListContainerStatsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) stats: Vec<ContainerStats>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerStats {
    #[prost(message, optional, tag = "1")]
    pub(crate) attributes: Option<ContainerAttributes>,
    #[prost(message, optional, tag = "3")]
    pub(crate) memory: Option<MemoryUsage>,
    #[prost(message, optional, tag = "4")]
    pub(crate) writable_layer: Option<FilesystemUsage>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ContainerAttributes {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(map = "string, string", tag = "3")]
    pub(crate) labels: HashMap<String, String>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct MemoryUsage {
    #[prost(message, optional, tag = "2")]
    pub(crate) working_set_bytes: Option<UInt64Value>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ReopenContainerLogRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct ReopenContainerLogResponse {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ExecSyncRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) cmd: Vec<String>,
    #[prost(int64, tag = "3")]
    pub(crate) timeout: i64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ExecSyncResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) stdout: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) stderr: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub(crate) exit_code: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum MountPropagation {
    Private = 0,
    HostToContainer = 1,
    Bidirectional = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ContainerState {
    Created = 0,
    Running = 1,
    Exited = 2,
    Unknown = 3,
}
