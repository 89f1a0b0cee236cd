//! `PodDisruptionBudget`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `PodDisruptionBudget`.
pub(super) const KIND: Kind = Kind {
    plural: "poddisruptionbudgets",
    name: "PodDisruptionBudget",
    short_names: &["pdb"],
    traits: &[Trait::Generation, Trait::VersionedUpdate, Trait::Status],
    rules: &old::scaling::PodDisruptionBudget,
    ..Kind::namespaced(super::GROUP, "v1")
};
