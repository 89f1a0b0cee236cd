//! `ResourceQuota`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ResourceQuota`.
pub(super) const KIND: Kind = Kind {
    plural: "resourcequotas",
    name: "ResourceQuota",
    short_names: &["quota"],
    traits: &[Trait::Status],
    rules: &old::quota::RESOURCE_QUOTA,
    ..Kind::namespaced(super::GROUP, "v1")
};
