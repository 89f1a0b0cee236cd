//! The messages of the Container Runtime Interface, version 1, as far as they are used here.
//!
//! Written after `api.proto` of k8s.io/cri-api, whose field numbers never change: fields that nobody
//! reads are left out.

pub(crate) mod container;
pub(crate) mod image;
pub(crate) mod sandbox;
pub(crate) mod snapshot;

use std::collections::HashMap;

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct VersionRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct VersionResponse {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(string, tag = "2")]
    pub(crate) runtime_name: String,
    #[prost(string, tag = "3")]
    pub(crate) runtime_version: String,
    #[prost(string, tag = "4")]
    pub(crate) runtime_api_version: String,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct StatusRequest {
    #[prost(bool, tag = "1")]
    pub(crate) verbose: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<RuntimeStatus>,
    /// What was asked to be told beside, in JSON.
    #[prost(map = "string, string", tag = "2")]
    pub(crate) info: HashMap<String, String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) runtime_handlers: Vec<RuntimeHandler>,
    #[prost(message, optional, tag = "4")]
    pub(crate) features: Option<RuntimeFeatures>,
}

/// One of the runtime's ways to run Pods; the empty name is the one that Pods have that name none.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RuntimeHandler {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) features: Option<RuntimeHandlerFeatures>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct RuntimeHandlerFeatures {
    #[prost(bool, tag = "1")]
    pub(crate) recursive_read_only_mounts: bool,
    #[prost(bool, tag = "2")]
    pub(crate) user_namespaces: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct RuntimeFeatures {
    #[prost(bool, tag = "1")]
    pub(crate) supplemental_groups_policy: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RuntimeStatus {
    #[prost(message, repeated, tag = "1")]
    pub(crate) conditions: Vec<RuntimeCondition>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RuntimeCondition {
    #[prost(string, tag = "1")]
    pub(crate) r#type: String,
    #[prost(bool, tag = "2")]
    pub(crate) status: bool,
    #[prost(string, tag = "3")]
    pub(crate) reason: String,
    #[prost(string, tag = "4")]
    pub(crate) message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Int64Value {
    #[prost(int64, tag = "1")]
    pub(crate) value: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct UInt64Value {
    #[prost(uint64, tag = "1")]
    pub(crate) value: u64,
}
