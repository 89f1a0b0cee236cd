//! `ResourceSlice`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ResourceSlice`.
pub(super) const KIND: Kind = Kind {
    plural: "resourceslices",
    name: "ResourceSlice",
    traits: &[Trait::Generation],
    selectable_fields: &["spec.nodeName", "spec.driver"],
    rules: &old::device::SLICE,
    ..Kind::of_cluster(super::GROUP, "v1")
};
