//! `StatefulSet`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `StatefulSet`.
pub(super) const KIND: Kind = Kind {
    plural: "statefulsets",
    name: "StatefulSet",
    short_names: &["sts"],
    traits: &[Trait::All, Trait::Generation, Trait::Scale, Trait::Status],
    rules: &old::statefulset::StatefulSet,
    ..Kind::namespaced(super::GROUP, "v1")
};
