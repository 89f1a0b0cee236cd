//! `SelfSubjectRulesReview`.

use crate::kinds::kind::{Kind, Trait};

/// What is said of `SelfSubjectRulesReview`.
pub(super) const KIND: Kind = Kind {
    plural: "selfsubjectrulesreviews",
    name: "SelfSubjectRulesReview",
    traits: &[Trait::CreateOnly],
    ..Kind::of_cluster(super::GROUP, "v1")
};
