//! `ValidatingAdmissionPolicyBinding`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ValidatingAdmissionPolicyBinding`.
pub(super) const KIND: Kind = Kind {
    plural: "validatingadmissionpolicybindings",
    name: "ValidatingAdmissionPolicyBinding",
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    rules: &old::admission_policy::VALIDATING_BINDING,
    ..Kind::of_cluster(super::GROUP, "v1")
};
