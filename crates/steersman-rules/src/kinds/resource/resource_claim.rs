//! `ResourceClaim`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ResourceClaim`.
pub(super) const KIND: Kind = Kind {
    plural: "resourceclaims",
    name: "ResourceClaim",
    traits: &[Trait::StatusAlone, Trait::Status, Trait::NoStatusTable],
    rules: &old::device::CLAIM,
    ..Kind::namespaced(super::GROUP, "v1")
};
