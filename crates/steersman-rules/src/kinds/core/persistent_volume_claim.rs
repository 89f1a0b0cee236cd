//! `PersistentVolumeClaim`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `PersistentVolumeClaim`.
pub(super) const KIND: Kind = Kind {
    plural: "persistentvolumeclaims",
    name: "PersistentVolumeClaim",
    short_names: &["pvc"],
    traits: &[Trait::Status],
    rules: &old::claim::CLAIM,
    ..Kind::namespaced(super::GROUP, "v1")
};
