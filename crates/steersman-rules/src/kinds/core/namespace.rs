//! `Namespace`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Namespace`.
pub(super) const KIND: Kind = Kind {
    plural: "namespaces",
    name: "Namespace",
    short_names: &["ns"],
    traits: &[Trait::OneByOne, Trait::Finalize, Trait::Status],
    selectable_fields: &["status.phase"],
    rules: &old::namespace::Namespace,
    ..Kind::of_cluster(super::GROUP, "v1")
};
