//! `Role`: what may be done in a namespace.

use super::policy_rule::{self, Scope};
use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;

/// What is said of `Role`.
pub(super) const KIND: Kind = Kind {
    plural: "roles",
    name: "Role",
    traits: &[Trait::CreateOnUpdate],
    effect: Some(Effect::Permission),
    rules: &RULES,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    check: |role, _, errors| {
        role.each("rules").for_each(|rule| policy_rule::check(&rule, Scope::Namespace, errors));
    },
    ..Rules::NONE
};
