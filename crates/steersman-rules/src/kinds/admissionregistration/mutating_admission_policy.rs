//! `MutatingAdmissionPolicy`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `MutatingAdmissionPolicy`.
pub(super) const KIND: Kind = Kind {
    plural: "mutatingadmissionpolicies",
    name: "MutatingAdmissionPolicy",
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    rules: &old::admission_policy::MUTATING,
    ..Kind::of_cluster(super::GROUP, "v1")
};
