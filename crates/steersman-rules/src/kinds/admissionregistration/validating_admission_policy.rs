//! `ValidatingAdmissionPolicy`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ValidatingAdmissionPolicy`.
pub(super) const KIND: Kind = Kind {
    plural: "validatingadmissionpolicies",
    name: "ValidatingAdmissionPolicy",
    traits: &[
        Trait::ApiExtensions,
        Trait::Generation,
        Trait::VersionedUpdate,
        Trait::StatusAlone,
        Trait::Status,
    ],
    rules: &old::admission_policy::VALIDATING,
    ..Kind::of_cluster(super::GROUP, "v1")
};
