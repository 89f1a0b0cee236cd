//! `RoleBinding`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `RoleBinding`.
pub(super) const KIND: Kind = Kind {
    plural: "rolebindings",
    name: "RoleBinding",
    traits: &[Trait::CreateOnUpdate],
    rules: &old::access::ROLE_BINDING,
    ..Kind::namespaced(super::GROUP, "v1")
};
