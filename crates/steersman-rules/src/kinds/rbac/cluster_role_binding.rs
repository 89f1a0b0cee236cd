//! `ClusterRoleBinding`: who has a role of the cluster everywhere.

use super::binding;
use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;

/// What is said of `ClusterRoleBinding`.
pub(super) const KIND: Kind = Kind {
    plural: "clusterrolebindings",
    name: "ClusterRoleBinding",
    traits: &[Trait::CreateOnUpdate],
    effect: Some(Effect::Permission),
    rules: &RULES,
    columns: binding::columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: binding::defaults,
    check: |binding, _, errors| binding::check(binding, &["ClusterRole"], errors),
    change: binding::change,
    ..Rules::NONE
};
