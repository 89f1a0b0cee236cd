//! `CSINode`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `CSINode`.
pub(super) const KIND: Kind = Kind {
    plural: "csinodes",
    name: "CSINode",
    traits: &[Trait::VersionedUpdate],
    rules: &old::storage::CSI_NODE,
    ..Kind::of_cluster(super::GROUP, "v1")
};
