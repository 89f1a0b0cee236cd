//! `APIService`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `APIService`.
pub(super) const KIND: Kind = Kind {
    plural: "apiservices",
    name: "APIService",
    traits: &[
        Trait::ApiExtensions,
        Trait::VersionedUpdate,
        Trait::StatusAlone,
        Trait::Status,
        Trait::NoStatusTable,
    ],
    storage_prefix: Some("apiregistration.k8s.io/apiservices"),
    rules: &old::api_service::API_SERVICE,
    ..Kind::of_cluster(super::GROUP, "v1")
};
