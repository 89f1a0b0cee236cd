//! `ReplicaSet`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ReplicaSet`.
pub(super) const KIND: Kind = Kind {
    plural: "replicasets",
    name: "ReplicaSet",
    short_names: &["rs"],
    traits: &[Trait::All, Trait::Generation, Trait::Scale, Trait::Status],
    rules: &old::replicas::ReplicaSet,
    ..Kind::namespaced(super::GROUP, "v1")
};
