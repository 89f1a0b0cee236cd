//! `SubjectAccessReview`.

use crate::kinds::kind::{Kind, Trait};

/// What is said of `SubjectAccessReview`.
pub(super) const KIND: Kind = Kind {
    plural: "subjectaccessreviews",
    name: "SubjectAccessReview",
    traits: &[Trait::CreateOnly],
    ..Kind::of_cluster(super::GROUP, "v1")
};
