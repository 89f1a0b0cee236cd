//! `RuntimeClass`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `RuntimeClass`.
pub(super) const KIND: Kind = Kind {
    plural: "runtimeclasses",
    name: "RuntimeClass",
    traits: &[Trait::CreateOnUpdate, Trait::VersionedUpdate],
    rules: &old::scheduling::RUNTIME_CLASS,
    ..Kind::of_cluster(super::GROUP, "v1")
};
