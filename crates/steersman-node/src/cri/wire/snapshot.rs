//! containerd's own snapshots: the layers of images, as they are mounted. CRI does not know them.

use std::collections::HashMap;

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ViewSnapshotRequest {
    #[prost(string, tag = "1")]
    pub(crate) snapshotter: String,
    #[prost(string, tag = "2")]
    pub(crate) key: String,
    #[prost(string, tag = "3")]
    pub(crate) parent: String,
    #[prost(map = "string, string", tag = "4")]
    pub(crate) labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ViewSnapshotResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) mounts: Vec<Mount>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Mount {
    #[prost(string, tag = "1")]
    pub(crate) kind: String,
    #[prost(string, tag = "2")]
    pub(crate) source: String,
    #[prost(string, tag = "3")]
    pub(crate) target: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) options: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RemoveSnapshotRequest {
    #[prost(string, tag = "1")]
    pub(crate) snapshotter: String,
    #[prost(string, tag = "2")]
    pub(crate) key: String,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct RemoveSnapshotResponse {}
