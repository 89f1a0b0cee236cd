//! `Deployment`.

use crate::kinds::kind::{self, Kind, Trait};
use crate::kinds::old;

/// What is said of `Deployment`.
pub(super) const KIND: Kind = Kind {
    plural: "deployments",
    name: "Deployment",
    short_names: &["deploy"],
    traits: &[Trait::All, Trait::Generation, Trait::Scale, Trait::Status],
    status_metadata: kind::DEPLOYMENT_METADATA,
    rules: &old::deployment::Deployment,
    ..Kind::namespaced(super::GROUP, "v1")
};
