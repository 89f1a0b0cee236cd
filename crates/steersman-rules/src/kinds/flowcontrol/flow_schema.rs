//! `FlowSchema`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `FlowSchema`.
pub(super) const KIND: Kind = Kind {
    plural: "flowschemas",
    name: "FlowSchema",
    traits: &[Trait::Generation, Trait::StatusAlone, Trait::Status],
    rules: &old::flow_control::FLOW_SCHEMA,
    ..Kind::of_cluster(super::GROUP, "v1")
};
