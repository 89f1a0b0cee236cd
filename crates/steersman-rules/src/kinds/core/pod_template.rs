//! `PodTemplate`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `PodTemplate`.
pub(super) const KIND: Kind = Kind {
    plural: "podtemplates",
    name: "PodTemplate",
    traits: &[Trait::Generation],
    rules: &old::template::PodTemplate,
    ..Kind::namespaced(super::GROUP, "v1")
};
