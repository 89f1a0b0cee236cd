//! `MutatingAdmissionPolicyBinding`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `MutatingAdmissionPolicyBinding`.
pub(super) const KIND: Kind = Kind {
    plural: "mutatingadmissionpolicybindings",
    name: "MutatingAdmissionPolicyBinding",
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    rules: &old::admission_policy::MUTATING_BINDING,
    ..Kind::of_cluster(super::GROUP, "v1")
};
