//! Images, and the room they take.

use std::collections::HashMap;

use super::sandbox::PodSandboxConfig;
use super::{Int64Value, UInt64Value};

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ImageSpec {
    #[prost(string, tag = "1")]
    pub(crate) image: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ImageFilter {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<ImageSpec>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ListImagesRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) filter: Option<ImageFilter>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ListImagesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) images: Vec<Image>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Image {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) repo_tags: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) repo_digests: Vec<String>,
    #[prost(uint64, tag = "4")]
    pub(crate) size: u64,
    #[prost(message, optional, tag = "5")]
    pub(crate) uid: Option<Int64Value>,
    #[prost(string, tag = "6")]
    pub(crate) username: String,
    #[prost(bool, tag = "8")]
    pub(crate) pinned: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ImageStatusRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<ImageSpec>,
    #[prost(bool, tag = "2")]
    pub(crate) verbose: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ImageStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<Image>,
    /// Of what nobody has agreed on, as JSON.
    #[prost(map = "string, string", tag = "2")]
    pub(crate) info: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct AuthConfig {
    #[prost(string, tag = "1")]
    pub(crate) username: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
    #[prost(string, tag = "3")]
    pub(crate) auth: String,
    #[prost(string, tag = "4")]
    pub(crate) server_address: String,
    #[prost(string, tag = "5")]
    pub(crate) identity_token: String,
    #[prost(string, tag = "6")]
    pub(crate) registry_token: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct PullImageRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<ImageSpec>,
    #[prost(message, optional, tag = "2")]
    pub(crate) auth: Option<AuthConfig>,
    #[prost(message, optional, tag = "3")]
    pub(crate) sandbox_config: Option<PodSandboxConfig>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct PullImageResponse {
    #[prost(string, tag = "1")]
    pub(crate) image_ref: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RemoveImageRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<ImageSpec>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct RemoveImageResponse {}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct ImageFsInfoRequest {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ImageFsInfoResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) image_filesystems: Vec<FilesystemUsage>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) container_filesystems: Vec<FilesystemUsage>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct FilesystemUsage {
    #[prost(int64, tag = "1")]
    pub(crate) timestamp: i64,
    #[prost(message, optional, tag = "2")]
    pub(crate) fs_id: Option<FilesystemIdentifier>,
    #[prost(message, optional, tag = "3")]
    pub(crate) used_bytes: Option<UInt64Value>,
    #[prost(message, optional, tag = "4")]
    pub(crate) inodes_used: Option<UInt64Value>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct FilesystemIdentifier {
    #[prost(string, tag = "1")]
    pub(crate) mountpoint: String,
}
