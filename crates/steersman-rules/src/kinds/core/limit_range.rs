//! `LimitRange`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `LimitRange`.
pub(super) const KIND: Kind = Kind {
    plural: "limitranges",
    name: "LimitRange",
    short_names: &["limits"],
    traits: &[Trait::CreateOnUpdate],
    rules: &old::quota::LIMIT_RANGE,
    ..Kind::namespaced(super::GROUP, "v1")
};
