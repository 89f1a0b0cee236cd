//! `ReplicationController`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ReplicationController`.
pub(super) const KIND: Kind = Kind {
    plural: "replicationcontrollers",
    name: "ReplicationController",
    short_names: &["rc"],
    traits: &[Trait::All, Trait::Generation, Trait::Scale, Trait::Status],
    storage_prefix: Some("controllers"),
    selectable_fields: &["status.replicas"],
    rules: &old::replicas::ReplicationController,
    ..Kind::namespaced(super::GROUP, "v1")
};
