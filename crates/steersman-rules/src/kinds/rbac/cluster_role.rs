//! `ClusterRole`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ClusterRole`.
pub(super) const KIND: Kind = Kind {
    plural: "clusterroles",
    name: "ClusterRole",
    traits: &[Trait::CreateOnUpdate],
    rules: &old::access::CLUSTER_ROLE,
    ..Kind::of_cluster(super::GROUP, "v1")
};
