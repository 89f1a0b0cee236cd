//! `LocalSubjectAccessReview`.

use crate::kinds::kind::{Kind, Trait};

/// What is said of `LocalSubjectAccessReview`.
pub(super) const KIND: Kind = Kind {
    plural: "localsubjectaccessreviews",
    name: "LocalSubjectAccessReview",
    traits: &[Trait::CreateOnly],
    ..Kind::namespaced(super::GROUP, "v1")
};
