//! `ComponentStatus`.

use crate::kinds::kind::{Kind, Trait};

/// What is said of `ComponentStatus`.
pub(super) const KIND: Kind = Kind {
    plural: "componentstatuses",
    name: "ComponentStatus",
    short_names: &["cs"],
    traits: &[Trait::ReadOnly],
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    ..Kind::of_cluster(super::GROUP, "v1")
};
