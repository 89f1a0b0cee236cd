//! `ServiceAccount`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ServiceAccount`.
pub(super) const KIND: Kind = Kind {
    plural: "serviceaccounts",
    name: "ServiceAccount",
    short_names: &["sa"],
    traits: &[Trait::Token],
    rules: &old::access::SERVICE_ACCOUNT,
    ..Kind::namespaced(super::GROUP, "v1")
};
