//! `SelfSubjectReview`.

use crate::kinds::kind::{Kind, Trait};

/// What is said of `SelfSubjectReview`.
pub(super) const KIND: Kind = Kind {
    plural: "selfsubjectreviews",
    name: "SelfSubjectReview",
    traits: &[Trait::CreateOnly],
    ..Kind::of_cluster(super::GROUP, "v1")
};
