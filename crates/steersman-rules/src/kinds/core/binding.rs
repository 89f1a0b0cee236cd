//! Bindings: how a scheduler says which node a pod shall run on. They are acted on, not stored.

use crate::kinds::kind::{Kind, Trait};

/// What is said of `Binding`.
pub(super) const KIND: Kind = Kind {
    plural: "bindings",
    name: "Binding",
    traits: &[Trait::CreateOnly],
    ..Kind::namespaced(super::GROUP, "v1")
};
