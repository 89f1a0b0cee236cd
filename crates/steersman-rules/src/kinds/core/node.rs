//! `Node`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Node`.
pub(super) const KIND: Kind = Kind {
    plural: "nodes",
    name: "Node",
    short_names: &["no"],
    traits: &[Trait::Proxy, Trait::Status],
    storage_prefix: Some("minions"),
    selectable_fields: &["spec.unschedulable"],
    rules: &old::node::Node,
    ..Kind::of_cluster(super::GROUP, "v1")
};
