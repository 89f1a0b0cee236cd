//! `ResourceClaimTemplate`.

use crate::kinds::kind::Kind;
use crate::kinds::old;

/// What is said of `ResourceClaimTemplate`.
pub(super) const KIND: Kind = Kind {
    plural: "resourceclaimtemplates",
    name: "ResourceClaimTemplate",
    rules: &old::device::CLAIM_TEMPLATE,
    ..Kind::namespaced(super::GROUP, "v1")
};
