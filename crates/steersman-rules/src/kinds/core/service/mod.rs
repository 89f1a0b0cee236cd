//! `Service`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Service`.
pub(super) const KIND: Kind = Kind {
    plural: "services",
    name: "Service",
    short_names: &["svc"],
    traits: &[Trait::All, Trait::CreateOnUpdate, Trait::Proxy, Trait::Status],
    storage_prefix: Some("services/specs"),
    selectable_fields: &["spec.clusterIP", "spec.type"],
    rules: &old::service::Service,
    ..Kind::namespaced(super::GROUP, "v1")
};
