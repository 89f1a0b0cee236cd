//! `Endpoints`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Endpoints`.
pub(super) const KIND: Kind = Kind {
    plural: "endpoints",
    name: "Endpoints",
    short_names: &["ep"],
    traits: &[Trait::CreateOnUpdate],
    storage_prefix: Some("services/endpoints"),
    deprecation: Some(
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    rules: &old::endpoints::ENDPOINTS,
    ..Kind::namespaced(super::GROUP, "v1")
};
