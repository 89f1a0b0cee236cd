//! `DeviceClass`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `DeviceClass`.
pub(super) const KIND: Kind = Kind {
    plural: "deviceclasses",
    name: "DeviceClass",
    traits: &[Trait::Generation],
    rules: &old::device::CLASS,
    ..Kind::of_cluster(super::GROUP, "v1")
};
