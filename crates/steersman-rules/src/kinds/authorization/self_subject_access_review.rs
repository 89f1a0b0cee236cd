//! `SelfSubjectAccessReview`.

use crate::kinds::kind::{Kind, Trait};

/// What is said of `SelfSubjectAccessReview`.
pub(super) const KIND: Kind = Kind {
    plural: "selfsubjectaccessreviews",
    name: "SelfSubjectAccessReview",
    traits: &[Trait::CreateOnly],
    ..Kind::of_cluster(super::GROUP, "v1")
};
