//! `RoleBinding`: who has a role in a namespace; the role may be one of the namespace or one of
//! the cluster.

use super::binding;
use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;

/// What is said of `RoleBinding`.
pub(super) const KIND: Kind = Kind {
    plural: "rolebindings",
    name: "RoleBinding",
    traits: &[Trait::CreateOnUpdate],
    effect: Some(Effect::Permission),
    rules: &RULES,
    columns: binding::columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: binding::defaults,
    check: |binding, _, errors| binding::check(binding, &["Role", "ClusterRole"], errors),
    change: binding::change,
    ..Rules::NONE
};
