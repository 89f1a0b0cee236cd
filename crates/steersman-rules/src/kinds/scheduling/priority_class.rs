//! `PriorityClass`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `PriorityClass`.
pub(super) const KIND: Kind = Kind {
    plural: "priorityclasses",
    name: "PriorityClass",
    short_names: &["pc"],
    traits: &[Trait::Generation],
    rules: &old::scheduling::PRIORITY_CLASS,
    ..Kind::of_cluster(super::GROUP, "v1")
};
