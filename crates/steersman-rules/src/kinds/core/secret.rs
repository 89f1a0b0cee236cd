//! `Secret`.

use crate::kinds::kind::Kind;
use crate::kinds::old;

/// What is said of `Secret`.
pub(super) const KIND: Kind = Kind {
    plural: "secrets",
    name: "Secret",
    selectable_fields: &["type"],
    rules: &old::config::Secret,
    ..Kind::namespaced(super::GROUP, "v1")
};
