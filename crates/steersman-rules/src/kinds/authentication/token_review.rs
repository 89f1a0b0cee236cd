//! `TokenReview`.

use crate::kinds::kind::{Kind, Trait};

/// What is said of `TokenReview`.
pub(super) const KIND: Kind = Kind {
    plural: "tokenreviews",
    name: "TokenReview",
    traits: &[Trait::CreateOnly],
    ..Kind::of_cluster(super::GROUP, "v1")
};
