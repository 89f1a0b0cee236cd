//! `Role`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Role`.
pub(super) const KIND: Kind = Kind {
    plural: "roles",
    name: "Role",
    traits: &[Trait::CreateOnUpdate],
    rules: &old::access::ROLE,
    ..Kind::namespaced(super::GROUP, "v1")
};
