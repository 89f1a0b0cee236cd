//! `PriorityLevelConfiguration`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `PriorityLevelConfiguration`.
pub(super) const KIND: Kind = Kind {
    plural: "prioritylevelconfigurations",
    name: "PriorityLevelConfiguration",
    traits: &[Trait::Generation, Trait::StatusAlone, Trait::Status],
    rules: &old::flow_control::PRIORITY_LEVEL,
    ..Kind::of_cluster(super::GROUP, "v1")
};
