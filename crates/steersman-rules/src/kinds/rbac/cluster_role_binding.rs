//! `ClusterRoleBinding`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ClusterRoleBinding`.
pub(super) const KIND: Kind = Kind {
    plural: "clusterrolebindings",
    name: "ClusterRoleBinding",
    traits: &[Trait::CreateOnUpdate],
    rules: &old::access::CLUSTER_ROLE_BINDING,
    ..Kind::of_cluster(super::GROUP, "v1")
};
